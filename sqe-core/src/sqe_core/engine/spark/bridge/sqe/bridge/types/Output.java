package sqe.bridge.types;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.channels.Channels;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.apache.arrow.vector.ipc.WriteChannel;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.st.ST_AsBinary;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.*;
import scala.Option;
import scala.collection.immutable.HashMap;
import sqe.bridge.BridgeException;
import sqe.bridge.functions.TypeNames;
import sqe.bridge.plan.Trees;
import sqe.bridge.stream.StreamFormat;

/** The columns of a result as they travel: types that Arrow or its readers do not know become text. */
public final class Output {
  private static final int MAX_NESTING = 61; // the row itself, and 60 levels of each column

  private Output() {}

  /** The Arrow schema of a plan, as the one message that starts an IPC stream. */
  public static byte[] arrowSchema(StructType schema) throws Exception {
    requireReadable(schema);
    SQLConf conf = SQLConf.get();
    return message(ArrowTypes.schema(schema, StreamFormat.ZONE, conf.arrowUseLargeVarTypes()));
  }

  public static byte[] message(Schema schema) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    MessageSerializer.serialize(new WriteChannel(Channels.newChannel(bytes)), schema);
    return bytes.toByteArray();
  }

  /** Readers of Arrow follow types to a bounded depth only. */
  public static void requireReadable(StructType schema) {
    List<DataType> level = List.of(schema);
    for (int depth = 0; !level.isEmpty(); depth++) {
      if (depth > MAX_NESTING) throw new BridgeException("SQE_TYPE_TOO_NESTED", "a type of more than " + MAX_NESTING + " levels");
      level = level.stream().flatMap(Output::inside).toList();
    }
  }

  private static Stream<DataType> inside(DataType type) {
    if (type instanceof ArrayType array) return Stream.of(array.elementType());
    if (type instanceof MapType map) return Stream.of(map.keyType(), map.valueType());
    return type instanceof StructType row ? Arrays.stream(row.fields()).map(StructField::dataType) : Stream.empty();
  }

  /** The plan below a projection that makes its columns fit for Arrow, or null when all do. */
  public static LogicalPlan withTransportableColumns(LogicalPlan plan) {
    List<NamedExpression> columns = new ArrayList<>();
    boolean changed = false;
    for (Attribute column : Trees.each(plan.output())) {
      boolean fits = fits(column.dataType());
      columns.add(fits ? column : fitting(column));
      changed |= !fits;
    }
    return changed ? new Project(Trees.seq(columns), plan) : null;
  }

  private static Alias fitting(Attribute column) {
    Metadata metadata = ArrowTypes.with(column.metadata(), ArrowTypes.SQL_TYPE, TypeNames.of(column.dataType()));
    return new Alias(
        converted(column), column.name(), NamedExpression.newExprId(), Trees.seq(), Option.apply(metadata), Trees.seq());
  }

  /** A column of a table as results have it; the same object when it fits as it is. */
  static StructField transportable(StructField field) {
    DataType type = field.dataType();
    if (fits(type)) return field;
    DataType fit = holdsVariant(type) ? DataTypes.StringType : isPlace(type) ? DataTypes.BinaryType : transportable(type);
    Metadata metadata = ArrowTypes.with(field.metadata(), ArrowTypes.SQL_TYPE, TypeNames.of(type));
    return new StructField(field.name(), fit, field.nullable(), metadata);
  }

  private static boolean isPlace(DataType type) {
    return type instanceof GeometryType || type instanceof GeographyType;
  }

  private static Expression converted(Expression column) {
    Option<String> zone = Option.apply(SQLConf.get().sessionLocalTimeZone());
    DataType type = column.dataType();
    // Spark casts a variant inside of another type to nothing.
    if (holdsVariant(type)) return new StructsToJson(new HashMap<>(), column, zone);
    if (isPlace(type)) return new ST_AsBinary(column);
    return new Cast(column, transportable(type), zone, Cast.apply$default$4());
  }

  private static boolean holdsVariant(DataType type) {
    return type.existsRecursively(part -> part instanceof VariantType);
  }

  private static boolean fits(DataType type) {
    return type.sameType(transportable(type));
  }

  private static DataType transportable(DataType type) {
    return type.transformRecursively(
        Trees.where(part -> part instanceof VariantType || isPlace(part) ? DataTypes.StringType : null));
  }
}
