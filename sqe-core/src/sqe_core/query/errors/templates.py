"""Our text for each of the engine's conditions that a user can cause (ERR-2). Any other is "Query failed".

In a text, `{parameter:kind}` stands for a parameter of the condition, shown as its kind says:

    name     an identifier of the user's, without our internal parts        count    how many names a list holds
    names    a list of identifiers                                          type     a type, as SQE names it
    number   digits and what stands between them                            word     a keyword or number word
    token    a piece of the statement                                       column   an expression, if it is a column
    value    data: shown only where that is safe (ERR-4), else "…"

A condition covers its subclasses unless they have an entry of their own. A test compares every entry with Spark's own
list of conditions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqe_core.spi.errors import (
    CommitConflictError,
    ErrorCode,
    ExternalError,
    NotSupportedError,
    ObjectNotFoundError,
    QueryTimeoutError,
    ResourcesError,
    SqeError,
    UserError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """What becomes of a condition.

    `suggest` names the parameter for which a similar visible name is looked up, `locate` the one that holds a column by
    which a place is found when the engine gives none.
    """

    text: str
    code: ErrorCode
    error: type[SqeError] = UserError
    hint: str | None = None
    suggest: str | None = None
    locate: str | None = None
    suggest_from: str = "columns"


_C = ErrorCode


def _semantic(text: str, hint: str | None = None) -> Template:
    return Template(text=text, code=_C.SEMANTIC_ERROR, hint=hint)


_SNAPSHOTS = 'SELECT * FROM "t$snapshots" lists the snapshots of t, "t$refs" its branches and tags'


def _types(text: str, hint: str | None = None) -> Template:
    return Template(text=text, code=_C.TYPE_MISMATCH, hint=hint)


def _arguments(text: str, hint: str | None = None) -> Template:
    return Template(text=text, code=_C.INVALID_ARGUMENTS, hint=hint)


def _cast(text: str, hint: str | None = None) -> Template:
    return Template(text=text, code=_C.INVALID_CAST, hint=hint)


def _syntax(text: str, hint: str | None = None) -> Template:
    return Template(text=text, code=_C.SYNTAX_ERROR, hint=hint)


def _zero(text: str, hint: str | None = None) -> Template:
    return Template(text=text, code=_C.DIVISION_BY_ZERO, hint=hint)


def _unsupported(text: str, hint: str | None = None) -> Template:
    return Template(text=text, code=_C.NOT_SUPPORTED, error=NotSupportedError, hint=hint)


def _column(text: str, suggest: str | None = None) -> Template:
    return Template(text=text, code=_C.COLUMN_NOT_FOUND, suggest=suggest)


def _function(text: str, suggest: str | None = None) -> Template:
    return Template(text=text, code=_C.FUNCTION_NOT_FOUND, suggest=suggest, suggest_from="functions")


def _exists(text: str, code: ErrorCode) -> Template:
    return Template(text=text, code=code)


def _missing(text: str, code: ErrorCode) -> Template:
    return Template(text=text, code=code, error=ObjectNotFoundError)


def _resources(text: str, hint: str | None = None) -> Template:
    return Template(text=text, code=_C.RESOURCE_EXHAUSTED, error=ResourcesError, hint=hint)


def _external(text: str, code: ErrorCode, hint: str | None = None) -> Template:
    return Template(text=text, code=code, error=ExternalError, hint=hint)


_TRY_CAST = "TRY_CAST gives NULL instead"
_SMALLER_SIDE = "join on equal columns, leave out a BROADCAST hint, or filter this side"
_SMALLER = "filter or aggregate earlier, or select fewer columns"
_AGAIN = "send the statement again"

SPARK: Mapping[str, Template] = {
    # Names
    "UNRESOLVED_COLUMN": _column("Column {objectName:name} does not exist", "objectName"),
    "UNRESOLVED_FIELD": _column("Column {columnPath:name} has no field {fieldName:name}"),
    "UNRESOLVED_MAP_KEY": _column("Column {objectName:name} does not exist", "objectName"),
    "UNRESOLVED_USING_COLUMN_FOR_JOIN": _column(
        "Column {colName:name} of USING does not exist on the {side:word} side of the join", "colName"
    ),
    "COLUMN_NOT_FOUND": _column("Column {colName:name} does not exist", "colName"),
    "COLUMN_NOT_DEFINED_IN_TABLE": _column("Column {colName:name} does not exist", "colName"),
    "FIELD_NOT_FOUND": _column("Field {fieldName:name} does not exist"),
    "NONEXISTENT_FIELD_NAME_IN_LIST": _column("Field {nonExistFields:names} does not exist"),
    "CANNOT_RESOLVE_STAR_EXPAND": _column("{targetString:name}.* names nothing in FROM"),
    "CANNOT_RESOLVE_DATAFRAME_COLUMN": _column("Column {name:name} does not exist", "name"),
    "GROUPING_COLUMN_MISMATCH": _semantic("GROUPING() takes columns of GROUP BY"),
    "GROUPING_ID_COLUMN_MISMATCH": _semantic("The columns of grouping_id() are not those of GROUP BY"),
    "TABLE_OR_VIEW_NOT_FOUND": _missing(
        "Table {relationName:name} does not exist or you may not see it", _C.TABLE_NOT_FOUND
    ),
    "VIEW_NOT_FOUND": _missing("View {relationName:name} does not exist or you may not see it", _C.VIEW_NOT_FOUND),
    "SCHEMA_NOT_FOUND": _missing("Schema {schemaName:name} does not exist or you may not see it", _C.SCHEMA_NOT_FOUND),
    "CATALOG_NOT_FOUND": _missing("Catalog {catalogName:name} does not exist", _C.CATALOG_NOT_FOUND),
    "UNRESOLVED_ROUTINE": _function("Function {routineName:name} does not exist", "routineName"),
    "ROUTINE_NOT_FOUND": _function("Function {routineName:name} does not exist", "routineName"),
    "UNRESOLVABLE_TABLE_VALUED_FUNCTION": _function("Table function {name:name} does not exist"),
    "NOT_A_SCALAR_FUNCTION": _function("Function {functionName:name} stands in FROM only"),
    "NOT_A_TABLE_FUNCTION": _function("Function {functionName:name} cannot stand in FROM"),
    "UNRESOLVED_VARIABLE": _column("Column {variableName:name} does not exist", "variableName"),
    "AMBIGUOUS_REFERENCE": _semantic(
        "Column {name:name} is ambiguous: it may be {referenceNames:names}", "write the table before the column"
    ),
    "AMBIGUOUS_COLUMN_OR_FIELD": _semantic("Column {name:name} is ambiguous"),
    "AMBIGUOUS_COLUMN_REFERENCE": _semantic("Column {name:name} is ambiguous"),
    "AMBIGUOUS_LATERAL_COLUMN_ALIAS": _semantic("Alias {name:name} is given more than once"),
    "AMBIGUOUS_REFERENCE_TO_FIELDS": _semantic("Field {field:name} is ambiguous"),
    "DUPLICATED_CTE_NAMES": _semantic("WITH names {duplicateNames:names} more than once"),
    "TABLE_OR_VIEW_ALREADY_EXISTS": _exists("{relationName:name} already exists", _C.DUPLICATE_TABLE),
    "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS": _exists("{relationName:name} already exists", _C.DUPLICATE_TABLE),
    "VIEW_ALREADY_EXISTS": _exists("View {relationName:name} already exists", _C.DUPLICATE_TABLE),
    "SCHEMA_ALREADY_EXISTS": _exists("Schema {schemaName:name} already exists", _C.DUPLICATE_TABLE),
    "SCHEMA_NOT_EMPTY": _semantic("Schema {schemaName:name} is not empty", "use CASCADE"),
    "COLUMN_ALREADY_EXISTS": _exists("Column {columnName:name} is given more than once", _C.DUPLICATE_COLUMN),
    "FIELD_ALREADY_EXISTS": _exists("Column {fieldNames:name} already exists", _C.DUPLICATE_COLUMN),
    "CREATE_TABLE_COLUMN_DESCRIPTOR_DUPLICATE": _exists(
        "Column {columnName:name} says {optionName:word} more than once", _C.DUPLICATE_COLUMN
    ),
    "ALTER_TABLE_COLUMN_DESCRIPTOR_DUPLICATE": _exists(
        "Column {columnName:name} says {optionName:word} more than once", _C.DUPLICATE_COLUMN
    ),
    "DUPLICATE_ASSIGNMENTS": _exists("{nameList:names} is assigned more than once", _C.DUPLICATE_COLUMN),
    "STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST": _exists(
        "Column {staticName:name} stands in PARTITION and in the column list", _C.DUPLICATE_COLUMN
    ),
    "EXPECT_TABLE_NOT_VIEW": _semantic("{viewName:name} is a view, not a table"),
    "EXPECT_VIEW_NOT_TABLE": _semantic("{tableName:name} is a table, not a view"),
    "WRONG_COMMAND_FOR_OBJECT_TYPE": _semantic("{objectName:name} is a {foundType:word}, not a {requiredType:word}"),
    "IDENTIFIER_TOO_MANY_NAME_PARTS": _syntax("{identifier:name} has too many parts; names have at most three"),
    "INVALID_IDENTIFIER": _syntax("{ident:name} is no name unless it is quoted", 'write it in double quotes: "a-b"'),
    "INVALID_ATTRIBUTE_NAME_SYNTAX": _syntax("{name:name} is no name of a column"),
    # Text
    "PARSE_SYNTAX_ERROR": _syntax("Syntax error near {error:token}"),
    "PARSE_EMPTY_STATEMENT": _syntax("The statement is empty"),
    "INVALID_STATEMENT_OR_CLAUSE": _unsupported("{operation:word} is not supported"),
    "INVALID_SQL_SYNTAX": _syntax("The statement is not valid"),
    "INVALID_SQL_SYNTAX.REPETITIVE_WINDOW_DEFINITION": _syntax("Window {windowName:name} is defined more than once"),
    "INVALID_SQL_SYNTAX.UNRESOLVED_WINDOW_REFERENCE": _semantic("Window {windowName:name} is not defined"),
    "INVALID_SQL_SYNTAX.INVALID_WINDOW_REFERENCE": _semantic("Window {windowName:name} is not defined"),
    "INVALID_SQL_SYNTAX.TRANSFORM_WRONG_NUM_ARGS": _arguments(
        "The number of arguments of {transform:name} is {actualNum:number}; it must be {expectedNum:number}"
    ),
    "MISSING_WINDOW_SPECIFICATION": _semantic("Window {windowName:name} is not defined"),
    "TRAILING_COMMA_IN_SELECT": _syntax("A comma stands before FROM"),
    "UNCLOSED_BRACKETED_COMMENT": _syntax("A comment is not closed", "append */"),
    "DUPLICATE_CLAUSES": _syntax("Clause {clauseName:word} stands more than once"),
    "REPEATED_CLAUSE": _syntax("Clause {clause:word} stands more than once"),
    "SYNTAX_DISCONTINUED": _syntax("{clause:word} is not supported"),
    "COLUMN_ALIASES_NOT_ALLOWED": _syntax("Column aliases are not allowed here"),
    "INVALID_TYPED_LITERAL": _cast("{value:value} is no {valueType:type}"),
    "UNSUPPORTED_TYPED_LITERAL": _types("There are no literals of type {unsupportedType:type}"),
    "INVALID_NUMERIC_LITERAL_RANGE": _types("A number is outside of the range of {typeName:type}"),
    "INVALID_ESCAPE_CHAR": _syntax("ESCAPE takes one character"),
    "INVALID_ESC": _syntax("ESCAPE takes one character"),
    "INVALID_FORMAT": _arguments("The format is not valid"),
    "UNSUPPORTED_DATATYPE": _types("Type {typeName:type} does not exist"),
    "DATATYPE_MISSING_SIZE": _types("Type {type:type} needs a length"),
    "INCOMPLETE_TYPE_DEFINITION": _types("A type of the statement lacks its inner type"),
    "INVALID_INLINE_TABLE": _semantic("VALUES holds something that is no constant"),
    "INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE": _types(
        "The rows of VALUES have different types in column {colName:name}"
    ),
    "INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH": _semantic(
        "Row {rowIndex:number} of VALUES does not have as many columns as the first"
    ),
    # Shape of queries
    "MISSING_AGGREGATION": Template(
        text="{expression:column} is neither aggregated nor in GROUP BY",
        code=_C.SEMANTIC_ERROR,
        hint="add it to GROUP BY, or take any_value() of it",
        locate="expression",
    ),
    "MISSING_GROUP_BY": _semantic("GROUP BY is missing: a column stands beside an aggregate"),
    "GROUP_BY_AGGREGATE": _semantic("GROUP BY cannot hold an aggregate"),
    "GROUP_BY_POS_AGGREGATE": _semantic("GROUP BY {index:number} names an aggregate"),
    "GROUP_BY_POS_OUT_OF_RANGE": _semantic("GROUP BY {index:number} is out of range: positions are 1 to {size:number}"),
    "ORDER_BY_POS_OUT_OF_RANGE": _semantic("ORDER BY {index:number} is out of range: positions are 1 to {size:number}"),
    "STAR_GROUP_BY_POS": _semantic("SELECT * does not go with GROUP BY by position"),
    "UNRESOLVED_ALL_IN_GROUP_BY": _semantic("GROUP BY ALL finds nothing to group by"),
    "NESTED_AGGREGATE_FUNCTION": _semantic("An aggregate cannot stand inside an aggregate", "use a subquery"),
    "INVALID_WHERE_CONDITION": _semantic(
        "WHERE cannot hold an aggregate or a window function", "use HAVING or QUALIFY"
    ),
    "INVALID_AGGREGATE_FILTER": _semantic("FILTER takes a condition without aggregates"),
    "WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE": _semantic("Function {funcName:name} needs OVER (…)"),
    "WINDOW_FUNCTION_AND_FRAME_MISMATCH": _semantic("Function {funcName:name} does not take this window frame"),
    "UNSUPPORTED_EXPR_FOR_WINDOW": _semantic("OVER does not go with this expression"),
    "DISTINCT_WINDOW_FUNCTION_UNSUPPORTED": _unsupported("DISTINCT does not go with OVER"),
    "INVALID_WINDOW_SPEC_FOR_AGGREGATION_FUNC": _semantic("{aggFunc:name} takes no ORDER BY in its window"),
    "INVALID_WITHIN_GROUP_EXPRESSION": _semantic("WITHIN GROUP does not fit function {funcName:name}"),
    "UNSUPPORTED_EXPR_FOR_OPERATOR": _semantic("An aggregate, window function or generator stands where none may"),
    "UNSUPPORTED_GROUPING_EXPRESSION": _semantic("GROUPING() needs GROUPING SETS, CUBE or ROLLUP"),
    "GROUPING_SIZE_LIMIT_EXCEEDED": _semantic("There may be {maxSize:number} grouping columns"),
    "UNSUPPORTED_GENERATOR": _semantic("A function that makes rows stands where it may not", "use it in FROM"),
    "UNSUPPORTED_GENERATOR.MULTI_GENERATOR": _semantic("SELECT may hold one function that makes rows"),
    "MULTI_ALIAS_WITHOUT_GENERATOR": _semantic("Several aliases are given to one column"),
    "NUM_COLUMNS_MISMATCH": _semantic(
        "{operator:word}: the number of columns is {firstNumColumns:number} in the first query "
        "and {invalidNumColumns:number} in the {invalidOrdinalNum:word}"
    ),
    "INCOMPATIBLE_COLUMN_TYPE": _types(
        "{operator:word}: a column of one query is {dataType1:type}, of the other {dataType2:type}"
    ),
    "NUM_TABLE_VALUE_ALIASES_MISMATCH": _semantic(
        "The number of columns of {funcName:name} is {outColsNum:number}, not {aliasesNum:number}"
    ),
    "UDTF_ALIAS_NUMBER_MISMATCH": _semantic("The number of aliases is not the number of columns"),
    "ASSIGNMENT_ARITY_MISMATCH": _semantic(
        "The number of names is {numExpr:number}, the number of columns {numTarget:number}"
    ),
    "INVALID_LIMIT_LIKE_EXPRESSION": _semantic("LIMIT and OFFSET take a constant"),
    "INVALID_LIMIT_LIKE_EXPRESSION.DATA_TYPE": _types("LIMIT and OFFSET take a whole number"),
    "INVALID_LIMIT_LIKE_EXPRESSION.IS_NEGATIVE": _arguments("LIMIT and OFFSET cannot be negative"),
    "SUM_OF_LIMIT_AND_OFFSET_EXCEEDS_MAX_INT": _arguments("LIMIT and OFFSET together are too big"),
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": _semantic("A subquery that stands for one value returned several rows"),
    "ROW_SUBQUERY_TOO_MANY_ROWS": _semantic("A subquery that stands for one row returned several rows"),
    "INVALID_SUBQUERY_EXPRESSION": _semantic("A subquery that stands for one value has several columns"),
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY": _unsupported("A subquery cannot stand here"),
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.CORRELATED_COLUMN_NOT_FOUND": _column(
        "Column {value:name} does not exist in the query around"
    ),
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.HIGHER_ORDER_FUNCTION": _unsupported(
        "A subquery cannot stand in a lambda"
    ),
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.MUST_AGGREGATE_CORRELATED_SCALAR_SUBQUERY": _semantic(
        "A correlated subquery that stands for one value must aggregate"
    ),
    "SCALAR_SUBQUERY_IS_IN_GROUP_BY_OR_AGGREGATE_FUNCTION": _semantic(
        "A correlated subquery must stand in GROUP BY too"
    ),
    "INVALID_NON_DETERMINISTIC_EXPRESSIONS": _semantic("A random or changing expression cannot stand here"),
    "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION": _semantic(
        "A random or changing expression cannot stand in an aggregate", "use a subquery"
    ),
    "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE": _types("A join condition is {conditionType:type}, not boolean"),
    "INVALID_LATERAL_JOIN_TYPE": _semantic("LATERAL does not go with a {joinType:word} join"),
    "INCOMPATIBLE_JOIN_TYPES": _syntax("{joinType1:word} and {joinType2:word} do not go together"),
    "UNSUPPORTED_JOIN_TYPE": _unsupported("This kind of join is not supported"),
    "NOT_ALLOWED_IN_FROM": _syntax("PIVOT, UNPIVOT and LATERAL do not go together"),
    "INVALID_RECURSIVE_CTE": _semantic("A recursive WITH is a UNION ALL of a start and a step"),
    "INVALID_RECURSIVE_REFERENCE": _semantic("A recursive WITH refers to itself where it may not"),
    "UNION_NOT_SUPPORTED_IN_RECURSIVE_CTE": _unsupported("A recursive WITH takes UNION ALL only"),
    "RECURSION_LEVEL_LIMIT_EXCEEDED": _resources("A recursive WITH did not end after {levelLimit:number} levels"),
    "RECURSION_ROW_LIMIT_EXCEEDED": _resources("A recursive WITH made more than {rowLimit:number} rows"),
    "NON_LITERAL_PIVOT_VALUES": _semantic("PIVOT takes constant values"),
    "PIVOT_VALUE_DATA_TYPE_MISMATCH": _types("A value of PIVOT is {valueType:type}, its column is {pivotType:type}"),
    "INCOMPARABLE_PIVOT_COLUMN": _types("PIVOT cannot compare values of column {columnName:name}"),
    "UNPIVOT_VALUE_DATA_TYPE_MISMATCH": _types("The columns of UNPIVOT have different types"),
    "UNPIVOT_REQUIRES_VALUE_COLUMNS": _semantic("UNPIVOT needs at least one column"),
    "UNPIVOT_VALUE_SIZE_MISMATCH": _semantic("The columns of UNPIVOT do not fit its names"),
    "EXPRESSION_TYPE_IS_NOT_ORDERABLE": _types("Values of type {exprType:type} cannot be sorted"),
    "GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE": _types("Values of type {dataType:type} cannot be grouped"),
    "DATATYPE_CANNOT_ORDER": _types("Values of type {dataType:type} cannot be sorted"),
    "INVALID_USAGE_OF_STAR_OR_REGEX": _semantic("* cannot stand here"),
    "EXCEPT_OVERLAPPING_COLUMNS": _semantic("EXCEPT names a column more than once"),
    "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR": _arguments("The timestamp of AS OF cannot be read"),
    "INVALID_TIME_TRAVEL_SPEC": _syntax("AS OF takes a version or a timestamp, not both"),
    "MULTIPLE_TIME_TRAVEL_SPEC": _syntax("AS OF stands more than once"),
    # Functions and types
    "WRONG_NUM_ARGS": _arguments(
        "The number of arguments of {functionName:name} is {actualNum:number}; it must be {expectedNum:number}"
    ),
    "UNRECOGNIZED_PARAMETER_NAME": _arguments("Function {routineName:name} has no argument {argumentName:name}"),
    "REQUIRED_PARAMETER_NOT_FOUND": _arguments("Function {routineName:name} needs argument {parameterName:name}"),
    "UNEXPECTED_POSITIONAL_ARGUMENT": _arguments("Positional arguments stand before named ones"),
    "DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT": _arguments("Argument {parameterName:name} is given more than once"),
    "NAMED_PARAMETERS_NOT_SUPPORTED": _arguments("Function {functionName:name} takes no named arguments"),
    "INVALID_LAMBDA_FUNCTION_CALL": _arguments("A lambda does not fit its function"),
    "NON_FOLDABLE_ARGUMENT": _arguments("Argument {paramName:name} of {funcName:name} must be a constant"),
    "NOT_A_CONSTANT_STRING": _arguments("{name:word} takes a constant text"),
    "SECOND_FUNCTION_ARGUMENT_NOT_INTEGER": _arguments("The second argument of {functionName:name} is a whole number"),
    "SEED_EXPRESSION_IS_UNFOLDABLE": _arguments("A seed must be a constant"),
    "DATATYPE_MISMATCH": _types("The types of an expression do not fit"),
    "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES": _types("An operator cannot take {left:type} and {right:type}"),
    "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE": _types("An operator takes {inputType:type}, not {actualDataType:type}"),
    "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION": _types("{srcType:type} cannot be cast to {targetType:type}"),
    "DATATYPE_MISMATCH.CAST_WITH_CONF_SUGGESTION": _types("{srcType:type} cannot be cast to {targetType:type}"),
    "DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION": _types("{srcType:type} cannot be cast to {targetType:type}"),
    "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE": _types(
        "The {paramIndex:word} argument is {inputType:type}; it must be {requiredType:type}",
        "convert it with CAST(… AS …)",
    ),
    "DATATYPE_MISMATCH.UNSUPPORTED_INPUT_TYPE": _types("{functionName:name} does not take {dataType:type}"),
    "DATATYPE_MISMATCH.DATA_DIFF_TYPES": _types("The arguments of {functionName:name} have different types"),
    "DATATYPE_MISMATCH.IN_SUBQUERY_DATA_TYPE_MISMATCH": _types("IN compares values of different types"),
    "DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH": _semantic(
        "IN compares rows of {leftLength:number} and {rightLength:number} columns"
    ),
    "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE": _types("Values of type {dataType:type} cannot be sorted"),
    "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN": _types("A condition is {type:type}, not boolean"),
    "DATATYPE_MISMATCH.INVALID_MAP_KEY_TYPE": _types("{keyType:type} cannot be the key of a map"),
    "DATATYPE_MISMATCH.HASH_MAP_TYPE": _types("{functionName:name} does not take maps"),
    "DATATYPE_MISMATCH.ARRAY_FUNCTION_DIFF_TYPES": _types(
        "{functionName:name} cannot take {leftType:type} and {rightType:type}"
    ),
    "DATATYPE_MISMATCH.BINARY_ARRAY_DIFF_TYPES": _types(
        "{functionName:name} cannot take {leftType:type} and {rightType:type}"
    ),
    "DATATYPE_MISMATCH.MAP_FUNCTION_DIFF_TYPES": _types(
        "{functionName:name} cannot take {leftType:type} and {rightType:type}"
    ),
    "DATATYPE_MISMATCH.RANGE_FRAME_WITHOUT_ORDER": _semantic("RANGE needs ORDER BY in its window"),
    "DATATYPE_MISMATCH.RANGE_FRAME_MULTI_ORDER": _semantic("RANGE with a distance needs one column in ORDER BY"),
    "DATATYPE_MISMATCH.RANGE_FRAME_INVALID_TYPE": _types("RANGE cannot measure {orderSpecType:type}"),
    "DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_WITHOUT_FOLDABLE": _semantic("The bounds of a window are constants"),
    "DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_WRONG_COMPARISON": _semantic(
        "The bounds of a window are in the wrong order"
    ),
    "DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_INVALID_BOUND": _semantic(
        "The bounds of a window are in the wrong order"
    ),
    "DATATYPE_MISMATCH.STACK_COLUMN_DIFF_TYPES": _types(
        "The rows of stack have different types: {leftType:type} and {rightType:type}"
    ),
    "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT": _arguments("Argument {inputName:name} must be a constant"),
    "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE": _arguments("Argument {exprName:name} must be in {valueRange:number}"),
    "DATATYPE_MISMATCH.UNEXPECTED_NULL": _arguments("Argument {exprName:name} cannot be NULL"),
    "UNEXPECTED_INPUT_TYPE": _types(
        "The {paramIndex:word} argument of {functionName:name} is {inputType:type}; it must be {requiredType:type}"
    ),
    "CANNOT_CAST_DATATYPE": _types("{sourceType:type} cannot be cast to {targetType:type}"),
    "CANNOT_UP_CAST_DATATYPE": _types("{sourceType:type} cannot become {targetType:type} without loss"),
    "CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE": _types("{left:type} and {right:type} have no common type"),
    "INVALID_EXTRACT_BASE_FIELD_TYPE": _types("A value of type {other:type} has no fields or elements"),
    "INVALID_EXTRACT_FIELD": _arguments("{field:name} cannot be extracted"),
    "INVALID_EXTRACT_FIELD_TYPE": _types("The field of a row is chosen by its name"),
    "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION": _types(
        "A decimal of {precision:number} digits is too long; {maxPrecision:number} are allowed"
    ),
    "COLLATION_INVALID_NAME": _arguments("Collation {collationName:name} does not exist"),
    "COLLATION_MISMATCH": _types("Texts of different collations are compared"),
    "INDETERMINATE_COLLATION": _types("Texts of different collations are compared"),
    "INDETERMINATE_COLLATION_IN_EXPRESSION": _types("Texts of different collations are compared"),
    # Values
    "DIVIDE_BY_ZERO": _zero("Division by zero", "nullif(divisor, 0) gives NULL instead"),
    "REMAINDER_BY_ZERO": _zero("Division by zero", "nullif(divisor, 0) gives NULL instead"),
    "INTERVAL_DIVIDED_BY_ZERO": _zero("Division by zero", "nullif(divisor, 0) gives NULL instead"),
    "CAST_INVALID_INPUT": _cast("{expression:value} cannot be cast to {targetType:type}", _TRY_CAST),
    "CAST_OVERFLOW": _cast("{value:value} is too big for {targetType:type}", _TRY_CAST),
    "CONVERSION_INVALID_INPUT": _cast("{str:value} cannot be converted to {targetType:type}"),
    "CANNOT_PARSE_TIMESTAMP": _cast("A text is no timestamp of the format", _TRY_CAST),
    "CANNOT_PARSE_TIME": _cast("{input:value} is no time of the format"),
    "CANNOT_PARSE_DECIMAL": _cast("A text is no number of the format"),
    "CANNOT_PARSE_INTERVAL": _cast("{intervalString:value} is no interval"),
    "INVALID_INTERVAL_FORMAT": _cast("{input:value} is no interval"),
    "NUMERIC_OUT_OF_SUPPORTED_RANGE": _arguments("A number has more than 38 digits"),
    "NUMERIC_VALUE_OUT_OF_RANGE": _arguments("{value:value} is too big for decimal({precision:number},{scale:number})"),
    "NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION": _arguments(
        "{originalValue:value} is too big for decimal({precision:number},{scale:number})"
    ),
    "ARITHMETIC_OVERFLOW": _arguments("A number is too big for its type", "cast to a bigger type first"),
    "BINARY_ARITHMETIC_OVERFLOW": _arguments("A number is too big for its type", "cast to a bigger type first"),
    "INTERVAL_ARITHMETIC_OVERFLOW": _arguments("An interval is too long"),
    "DATETIME_OVERFLOW": _arguments("A date or time is out of range"),
    "DATETIME_FIELD_OUT_OF_BOUNDS": _arguments("A field of a date or time is out of range"),
    "INVALID_FRACTION_OF_SECOND": _arguments("Seconds are between 0 and 60"),
    "INVALID_DATETIME_PATTERN": _arguments("The datetime format is not valid"),
    "INCONSISTENT_BEHAVIOR_CROSS_VERSION": _arguments("A date or time does not fit its format"),
    "ILLEGAL_DAY_OF_WEEK": _arguments("{string:value} is no day of the week"),
    "INVALID_TIMEZONE": _arguments("Time zone {timeZone:value} does not exist"),
    "INVALID_ARRAY_INDEX": _arguments(
        "Index {indexValue:value} is out of bounds: the length of the array is {arraySize:value}"
    ),
    "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": _arguments(
        "Index {indexValue:value} is out of bounds: the length of the array is {arraySize:value}"
    ),
    "INVALID_INDEX_OF_ZERO": _arguments("Indexes begin at 1"),
    "NULL_MAP_KEY": _arguments("The key of a map cannot be NULL"),
    "DUPLICATED_MAP_KEY": _arguments("Key {key:value} stands in a map more than once"),
    "MALFORMED_RECORD_IN_PARSING": _arguments("A record cannot be parsed"),
    "MALFORMED_CSV_RECORD": _arguments("A record cannot be parsed"),
    "INVALID_JSON_ROOT_FIELD": _arguments("A JSON text does not have the type that was asked for"),
    "INVALID_JSON_DATA_TYPE": _arguments("The schema is not valid"),
    "CANNOT_PARSE_JSON_FIELD": _arguments("A JSON text does not have the type that was asked for"),
    "MALFORMED_VARIANT": _arguments("A JSON value is damaged"),
    "INVALID_VARIANT_CAST": _cast("A JSON value cannot be cast to {dataType:type}", _TRY_CAST),
    "INVALID_VARIANT_GET_PATH": _arguments("{path:value} is no JSON path"),
    "VARIANT_DUPLICATE_KEY": _arguments("Key {key:value} stands in a JSON object more than once"),
    "VARIANT_SIZE_LIMIT": _resources("A JSON value is too big"),
    "VARIANT_CONSTRUCTOR_SIZE_LIMIT": _resources("A JSON value is too big"),
    "INVALID_SCHEMA": _arguments("The schema is not valid"),
    "INVALID_SCHEMA_TYPE_NON_STRUCT": _arguments("The schema is not that of a row"),
    "INVALID_PARAMETER_VALUE": _arguments("Argument {parameter:name} of {functionName:name} is not valid"),
    "INVALID_PARAMETER_VALUE.PATTERN": _arguments("A regular expression is not valid"),
    "INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX": _arguments("A regular expression has {groupCount:number} groups"),
    "INVALID_PARAMETER_VALUE.DATETIME_UNIT": _arguments("{invalidValue:name} is no unit of time"),
    "INVALID_REGEXP_REPLACE": _arguments("regexp_replace cannot use its arguments"),
    "INVALID_UTF8_STRING": _arguments("A text is not valid UTF-8"),
    "MALFORMED_CHARACTER_CODING": _arguments("Bytes are no text of the character set"),
    "INVALID_URL": _arguments("{url:value} is no URL", "try_parse_url gives NULL instead"),
    "CANNOT_DECODE_URL": _arguments("{url:value} cannot be decoded"),
    "INVALID_BOUNDARY": _arguments("A bound of a window is out of range"),
    "INVALID_BITMAP_POSITION": _arguments("A position in a bitmap is out of range"),
    "COMPARATOR_RETURNS_NULL": _arguments("The comparison of a sort returned NULL"),
    "HLL_INVALID_LG_K": _arguments("{function:name}: lgConfigK must be between {min:number} and {max:number}"),
    "HLL_INVALID_INPUT_SKETCH_BUFFER": _arguments("{function:name} takes HLL sketches only"),
    "HLL_UNION_DIFFERENT_LG_K": _arguments("{function:name}: the sketches have different precisions"),
    "USER_RAISED_EXCEPTION": _arguments("{errorMessage:value}"),
    "COLLECTION_SIZE_LIMIT_EXCEEDED": _resources("An array would be too big"),
    # Writes
    "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS": _semantic(
        "The number of columns of INSERT is {dataColumns:count}; the table takes {tableColumns:count}"
    ),
    "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS": _semantic(
        "The number of columns of INSERT is {dataColumns:count}; the table takes {tableColumns:count}"
    ),
    "INSERT_PARTITION_COLUMN_ARITY_MISMATCH": _semantic("INSERT does not have as many columns as the table takes"),
    "INCOMPATIBLE_DATA_FOR_TABLE": _types("A column does not fit column {colName:name} of the table"),
    "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST": _types(
        "Column {colName:name} is {targetType:type} and cannot take {srcType:type}", "write a CAST"
    ),
    "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA": _semantic("There is nothing to write into column {colName:name}"),
    "INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_COLUMNS": _column("The table has no column {extraColumns:names}"),
    "INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_STRUCT_FIELDS": _column(
        "Column {colName:name} has no field {extraFields:names}"
    ),
    "INCOMPATIBLE_DATA_FOR_TABLE.STRUCT_MISSING_FIELDS": _semantic("Column {colName:name} needs {missingFields:names}"),
    "INCOMPATIBLE_DATA_FOR_TABLE.NULLABLE_COLUMN": _semantic("Column {colName:name} cannot be NULL"),
    "NOT_NULL_CONSTRAINT_VIOLATION": _semantic("A column that cannot be NULL would be"),
    "NOT_NULL_ASSERT_VIOLATION": _semantic("A column that cannot be NULL would be"),
    "NO_DEFAULT_COLUMN_VALUE_AVAILABLE": _semantic("Column {colName:name} cannot be NULL and has no default"),
    "DEFAULT_PLACEMENT_INVALID": _syntax("DEFAULT stands alone as a value"),
    "REF_DEFAULT_VALUE_IS_NOT_ALLOWED_IN_PARTITION": _syntax("PARTITION does not take DEFAULT"),
    "INVALID_DEFAULT_VALUE": _arguments("The default of column {colName:name} is not valid"),
    "INVALID_DEFAULT_VALUE.DATA_TYPE": _types(
        "The default of column {colName:name} is {actualType:type}, not {expectedType:type}"
    ),
    "UNSUPPORTED_DEFAULT_VALUE": _unsupported("DEFAULT is not supported here"),
    "DEFAULT_UNSUPPORTED": _unsupported("DEFAULT is not supported here"),
    "ADD_DEFAULT_UNSUPPORTED": _unsupported("DEFAULT is not supported here"),
    "CAST_OVERFLOW_IN_TABLE_INSERT": _cast(
        "A value is too big for column {columnName:name}, which is {targetType:type}"
    ),
    "EXCEED_LIMIT_LENGTH": _cast("A text is longer than {limit:number} characters"),
    "NON_PARTITION_COLUMN": _semantic("PARTITION names {columnName:name}, by which the table is not partitioned"),
    "NOT_A_PARTITIONED_TABLE": _semantic("The table is not partitioned"),
    "MERGE_CARDINALITY_VIOLATION": _semantic(
        "Two source rows of MERGE match one row of the target", "make the source unique by the columns of ON"
    ),
    "MERGE_WITHOUT_WHEN": _syntax("MERGE needs at least one WHEN"),
    "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION": _syntax("Only the last WHEN MATCHED may have no condition"),
    "NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION": _syntax(
        "Only the last WHEN NOT MATCHED BY SOURCE may have no condition"
    ),
    "NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION": _syntax(
        "Only the last WHEN NOT MATCHED may have no condition"
    ),
    "UNSUPPORTED_MERGE_CONDITION": _unsupported("A condition of MERGE cannot hold aggregates or random values"),
    "UNSUPPORTED_MERGE_CONDITION.SUBQUERY": _unsupported("A condition of MERGE cannot hold a subquery"),
    "UNSUPPORTED_OVERWRITE": _unsupported("INSERT OVERWRITE cannot read the table that it replaces"),
    "UNSUPPORTED_INSERT": _unsupported("The target cannot be written"),
    "INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS": Template(
        text="The table changed while the statement was prepared",
        code=_C.COMMIT_CONFLICT,
        error=CommitConflictError,
        hint=_AGAIN,
    ),
    # Definitions
    "CANNOT_UPDATE_FIELD": _unsupported("The type of column {fieldName:name} cannot be changed as a whole"),
    "NOT_SUPPORTED_CHANGE_COLUMN": _unsupported(
        "Column {originName:name} cannot change from {originType:type} to {newType:type}"
    ),
    "NOT_SUPPORTED_CHANGE_SAME_COLUMN": _semantic("Column {fieldName:name} is changed more than once"),
    "NULLABLE_COLUMN_OR_FIELD": _semantic("Column {name:name} may be NULL"),
    "UNSUPPORTED_PARTITION_TRANSFORM": _unsupported("This partition transform does not exist"),
    "UNSUPPORTED_TIME_TYPE": _types("Type time cannot be stored here"),
    "UNSUPPORTED_TIME_PRECISION": _types("time has at most 6 digits of a second"),
    "UNSUPPORTED_CHAR_OR_VARCHAR_AS_STRING": _types("char and varchar with a length cannot stand here"),
    "CANNOT_REMOVE_RESERVED_PROPERTY": _unsupported("Property {property:name} cannot be removed"),
    "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE": _unsupported("The statement is not supported for Iceberg tables"),
    "UNSUPPORTED_FEATURE": _unsupported("A part of the statement is not supported"),
    "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY": _unsupported("Table property {property:name} cannot be set"),
    "UNSUPPORTED_FEATURE.SET_OPERATION_ON_MAP_TYPE": _types(
        "Column {colName:name} is a map; DISTINCT, INTERSECT and EXCEPT cannot compare it"
    ),
    "UNSUPPORTED_FEATURE.SET_OPERATION_ON_VARIANT_TYPE": _types(
        "Column {colName:name} is JSON; DISTINCT, INTERSECT and EXCEPT cannot compare it"
    ),
    "UNSUPPORTED_FEATURE.COMBINATION_QUERY_RESULT_CLAUSES": _syntax(
        "ORDER BY, SORT BY, DISTRIBUTE BY and CLUSTER BY do not go together"
    ),
    "UNSUPPORTED_FEATURE.GEOSPATIAL_DISABLED": _unsupported("Geometry is not supported"),
    "UNSUPPORTED_FEATURE.PIVOT_AFTER_GROUP_BY": _syntax("PIVOT does not go with GROUP BY", "use a subquery"),
    "MISSING_CATALOG_ABILITY": _unsupported("The catalog does not support this"),
    "UNSUPPORTED_FEATURE.TABLE_OPERATION": _unsupported("The table does not support {operation:word}"),
    "DATATYPE_MISMATCH.INVALID_ROW_LEVEL_OPERATION_ASSIGNMENTS": _semantic(
        "The assignments of SET do not fit the table"
    ),
    "FAILED_FUNCTION_CALL": _arguments("Function {funcName:name} cannot take its arguments"),
    "_LEGACY_ERROR_TEMP_2330": _unsupported("Column {fieldName:name} allows NULL and cannot be made NOT NULL"),
    "_LEGACY_ERROR_TEMP_3060": _column("Column {i:name} of PARTITIONED BY does not exist"),
    # Windows, in conditions without a name
    "_LEGACY_ERROR_TEMP_0006": _semantic("INSERT in a MERGE has as many values as columns"),
    "_LEGACY_ERROR_TEMP_1021": _semantic("count takes * or columns, not table.*"),
    "_LEGACY_ERROR_TEMP_1030": _unsupported("FILTER does not go with OVER"),
    "_LEGACY_ERROR_TEMP_1031": _semantic("A window function cannot stand in an aggregate", "use a subquery"),
    "_LEGACY_ERROR_TEMP_1034": _semantic(
        "A window function cannot stand in {clauseName:word}", "use a subquery or QUALIFY"
    ),
    "_LEGACY_ERROR_TEMP_1035": _semantic("Function {prettyName:name} takes no window frame"),
    "_LEGACY_ERROR_TEMP_1036": _semantic("The window frame does not fit its function", "leave the frame out"),
    "_LEGACY_ERROR_TEMP_1037": _semantic("Function {wf:name} needs ORDER BY in its window"),
    "_LEGACY_ERROR_TEMP_1039": _unsupported("GROUP BY takes one time window"),
    "_LEGACY_ERROR_TEMP_1207": _types("The durations of window are texts such as '1 hour'"),
    "_LEGACY_ERROR_TEMP_1210": _types("The second argument of {funcName:name} is true or false"),
    "_LEGACY_ERROR_TEMP_1211": _semantic("A join has no condition", "write CROSS JOIN if every pair is meant"),
    "_LEGACY_ERROR_TEMP_1323": _types("Column {colName:name} is no number"),
    "_LEGACY_ERROR_TEMP_1324": _resources("Column {pivotColumn:name} of PIVOT has more than {maxValues:number} values"),
    # Resources
    "FAILED_TO_PARSE_TOO_COMPLEX": _resources("The statement is nested too deeply", "split it with WITH or a view"),
    "AGGREGATE_OUT_OF_MEMORY": _resources("The query needs more memory than there is", _SMALLER),
    "POINTER_ARRAY_OUT_OF_MEMORY": _resources("The query needs more memory than there is", _SMALLER),
    "SPILL_OUT_OF_MEMORY": _resources("The query needs more memory than there is", _SMALLER),
    "UNABLE_TO_ACQUIRE_MEMORY": _resources("The query needs more memory than there is", _SMALLER),
    "INTERNAL_ERROR_MEMORY": _resources("The query needs more memory than there is", _SMALLER),
    # Of the wait for a side of a join, and of its size.
    "_LEGACY_ERROR_TEMP_2097": _resources("One side of a join took too long to compute", _SMALLER_SIDE),
    "_LEGACY_ERROR_TEMP_2248": _resources("One side of a join is too big to be kept in memory", _SMALLER_SIDE),
    "_LEGACY_ERROR_TEMP_2249": _resources("One side of a join is too big to be kept in memory", _SMALLER_SIDE),
    "_LEGACY_ERROR_TEMP_2250": _resources("One side of a join is too big to be kept in memory", _SMALLER_SIDE),
    "KRYO_BUFFER_OVERFLOW": _resources("A row is too big", _SMALLER),
    # Storage
    "FAILED_READ_FILE": _external("A file of a table cannot be read", _C.STORAGE_ERROR),
    "PATH_NOT_FOUND": _external("A file of a table is missing", _C.STORAGE_ERROR),
    "TASK_WRITE_FAILED": _external("A file of a table cannot be written", _C.STORAGE_ERROR),
}

_UNAVAILABLE = _external("The catalog does not answer", _C.CATALOG_UNAVAILABLE, _AGAIN)
_MEMORY = _resources("The query needs more memory than there is", _SMALLER)
_STORAGE = _external("The storage of a table does not answer as expected", _C.STORAGE_ERROR)
_AWS = _external("A service of AWS does not answer as expected", _C.CATALOG_ERROR)
_REFUSED_KEYS = _external(
    "A service of AWS does not accept the keys that are configured",
    _C.CATALOG_ERROR,
    "who runs this server: look at the keys of the catalog and of [storage], and at the clock",
)
_METASTORE = _external("The metastore does not answer as expected", _C.CATALOG_UNAVAILABLE)
_MISSING_FILE = _external("A file of a table is missing", _C.STORAGE_ERROR)
_CONFLICT = Template(
    text="Another statement changed the table first",
    code=_C.COMMIT_CONFLICT,
    error=CommitConflictError,
    hint=_AGAIN,
)

# Simple names of Java's exceptions, where no condition says more.
JAVA: Mapping[str, Template] = {
    "CommitFailedException": _CONFLICT,
    "CommitStateUnknownException": _external(
        "The catalog did not say whether the change was made",
        _C.CATALOG_ERROR,
        "look at the table before you repeat it",
    ),
    "AlreadyExistsException": _exists("The object already exists", _C.DUPLICATE_TABLE),
    "NoSuchTableException": _missing("The table does not exist or you may not see it", _C.TABLE_NOT_FOUND),
    "NoSuchIcebergTableException": _missing("The table does not exist or you may not see it", _C.TABLE_NOT_FOUND),
    "NoSuchViewException": _missing("The view does not exist or you may not see it", _C.VIEW_NOT_FOUND),
    "NoSuchNamespaceException": _missing("The schema does not exist or you may not see it", _C.SCHEMA_NOT_FOUND),
    "NamespaceNotEmptyException": _semantic("The schema is not empty", "use CASCADE"),
    "NotAuthorizedException": Template(
        text="The catalog does not accept your login any more", code=_C.AUTHENTICATION_FAILED, hint="log in again"
    ),
    "ForbiddenException": Template(text="The catalog refuses this to you", code=_C.ACCESS_DENIED),
    "SQE_CATALOG_BUSY": _resources("The catalog is asked too often", "try again later"),
    "SQE_CATALOG_ENDLESS": _resources("The catalog has more schemas than SQE lists", "name the schema"),
    "SQE_CATALOG_SILENT": _UNAVAILABLE,
    "SQE_CATALOG_WANTS_SIGNATURES": _external(
        "The catalog wants its requests signed with AWS keys, and none are configured for it",
        _C.CATALOG_ERROR,
        'set auth.type = "aws" and its keys in [catalog.auth]',
    ),
    "SQE_FILE_KEYS_REFUSED": Template(
        text="The catalog gives no new keys for the files of a table", code=_C.ACCESS_DENIED, hint=_AGAIN
    ),
    "SQE_FILES_ON_EXECUTOR": _unsupported(
        "Executors in other processes cannot ask the catalog for keys or signatures",
        "have it give keys that are good for longer than the statement",
    ),
    "SQE_SIGNER_ELSEWHERE": _external(
        "The catalog has the files of a table opened by another server than its own, which would get your token",
        _C.CATALOG_ERROR,
        'have it give keys: access_delegation = "vended-credentials"',
    ),
    "SQE_SIGNER_UNKNOWN": _external(
        "The catalog signs the requests for the files of a table, and does not say where", _C.CATALOG_ERROR
    ),
    "ServiceUnavailableException": _UNAVAILABLE,
    "ServiceFailureException": _UNAVAILABLE,
    "RESTException": _external("The catalog does not answer as expected", _C.CATALOG_ERROR),
    "BadRequestException": _external("The catalog refuses the request", _C.CATALOG_ERROR),
    "UncheckedSQLException": _external("The catalog does not answer as expected", _C.CATALOG_ERROR),
    "UncheckedInterruptedException": _external("The catalog does not answer as expected", _C.CATALOG_ERROR),
    # Of Glue and other services of AWS, where Iceberg's catalog does not speak for them.
    "EntityNotFoundException": _missing("The object does not exist or you may not see it", _C.TABLE_NOT_FOUND),
    "ConcurrentModificationException": _CONFLICT,
    "InvalidInputException": _external("The catalog refuses the request", _C.CATALOG_ERROR),
    "ValidationException": _external("The catalog refuses the request", _C.CATALOG_ERROR),
    "OperationTimeoutException": _UNAVAILABLE,
    "InternalServiceException": _UNAVAILABLE,
    "ThrottlingException": _resources("The catalog is asked too often", "try again later"),
    "ResourceNumberLimitExceededException": _external("The catalog has no room for more", _C.CATALOG_ERROR),
    "GlueEncryptionException": _external("The catalog cannot use its encryption key", _C.CATALOG_ERROR),
    "GlueException": _AWS,
    "StsException": _REFUSED_KEYS,
    "ExpiredTokenException": _REFUSED_KEYS,
    "KmsException": _external("The key of encrypted data cannot be used", _C.STORAGE_ERROR),
    # Of the metastore of Hive.
    "NoSuchObjectException": _missing("The object does not exist or you may not see it", _C.TABLE_NOT_FOUND),
    "UnknownDBException": _missing("The schema does not exist or you may not see it", _C.SCHEMA_NOT_FOUND),
    "InvalidOperationException": _external("The metastore refuses the request", _C.CATALOG_ERROR),
    "InvalidObjectException": _external("The metastore refuses the request", _C.CATALOG_ERROR),
    "MetaException": _METASTORE,
    "RuntimeMetaException": _METASTORE,
    "TException": _METASTORE,
    "TTransportException": _METASTORE,
    "TApplicationException": _METASTORE,
    "LockException": _CONFLICT,
    "WaitingForLockException": _CONFLICT,
    "ConnectException": _UNAVAILABLE,
    "NoRouteToHostException": _UNAVAILABLE,
    "SSLException": _UNAVAILABLE,
    "SSLHandshakeException": _UNAVAILABLE,
    "HttpHostConnectException": _UNAVAILABLE,
    "UnknownHostException": _UNAVAILABLE,
    "SocketTimeoutException": _UNAVAILABLE,
    "NotFoundException": _MISSING_FILE,
    "FileNotFoundException": _MISSING_FILE,
    "NoSuchFileException": _MISSING_FILE,
    "NoSuchKeyException": _MISSING_FILE,
    "NoSuchBucketException": _external("The bucket of a table does not exist", _C.STORAGE_ERROR),
    "RuntimeIOException": _STORAGE,
    "UncheckedIOException": _STORAGE,
    "IOException": _STORAGE,
    "EOFException": _STORAGE,
    "S3Exception": _STORAGE,
    "SdkClientException": _STORAGE,
    "AccessDeniedException": _STORAGE,
    "ParquetDecodingException": _external("A file of a table is damaged", _C.STORAGE_ERROR),
    "OutOfMemoryError": _MEMORY,
    "SparkOutOfMemoryError": _MEMORY,
    "StackOverflowError": _resources("The statement is nested too deeply", "split it with WITH or a view"),
    "ArithmeticException": _arguments("A number is too big for its type"),
    "IllegalFormatConversionException": _arguments("A format does not fit its arguments"),
    "UnknownFormatConversionException": _arguments("A format does not fit its arguments"),
    "MissingFormatArgumentException": _arguments("A format does not fit its arguments"),
    "IllegalFormatPrecisionException": _arguments("A format does not fit its arguments"),
    "FormatFlagsConversionMismatchException": _arguments("A format does not fit its arguments"),
    "DateTimeException": _arguments("A date or time is out of range"),
    "PatternSyntaxException": _arguments("A regular expression is not valid"),
    "SQE_TIMES_IN_AVRO": _unsupported(
        "Times and nanoseconds cannot be written to Avro files", "set write.format.default to parquet or orc"
    ),
    "SQE_TOO_BIG_TO_COLLECT": _resources("Rows that are needed in one place are too big together", _SMALLER),
    "SQE_RESULT_COLUMNS": _resources(
        "The result has {columns:number} columns; {most:number} are allowed", "name the columns that you need"
    ),
    "SQE_STAR_COLUMNS": _resources(
        "The stars of the statement stand for more than {most:number} columns", "name the columns that you need"
    ),
    "SQE_TYPE_TOO_NESTED": _resources("The type of a column is nested more than 60 levels deep"),
    "SQE_PLAN_TOO_NESTED": _resources("The statement is nested too deeply", "split it with WITH or a view"),
    "SQE_PLANNING_TIMEOUT": Template(
        text="The statement took too long to plan", code=_C.QUERY_TIMEOUT, error=QueryTimeoutError, hint="simplify it"
    ),
    "SQE_DEFAULT_NOT_LITERAL": _unsupported("A default must be a literal"),
    "SQE_DEFAULT_TYPE": _types("A default does not have the type of its column"),
    "SQE_DEFAULT_NEEDS_FORMAT_3": _unsupported("Defaults need format-version 3"),
    "SQE_CATALOG_WITHOUT_VIEWS": _unsupported("The catalog has no views"),
    "SQE_CATALOG_WITHOUT_NAMESPACES": _unsupported("The catalog has no schemas"),
    "SQE_RESULT_SPILL_FULL": _resources(
        "The result is too big to be kept until it is read", "read it faster, or add LIMIT"
    ),
    "SQE_FUNCTION_ARGUMENT": _arguments("{reason:word}"),
    "SQE_FUNCTION_ARGUMENT.DATE_WITHOUT_TIME": _arguments(
        "A DATE has no hours, minutes and seconds to count with", "CAST it to TIMESTAMP"
    ),
    "SQE_FUNCTION_ARGUMENT.MAP_KEY": _arguments("The map has no such key", "element_at(map, key) gives NULL instead"),
    "SQE_FUNCTION_ARGUMENT.PRODUCT_SCALE": _arguments(
        "The product of these decimals has more than 38 digits behind the point", "CAST a factor to fewer digits"
    ),
    "SQE_FUNCTION_TYPES": _types("Function {function:name} does not take arguments of these types"),
    "SQE_PARAMETER_TYPE": _types("A parameter has a type that SQE does not know"),
}

# Exceptions that only their text tells apart: Iceberg and the JVM have a few classes for everything. The server's own
# record of the failure is searched; what matches a group is a word of the user's. The first that fits counts.
TEXTS: tuple[tuple[re.Pattern[str], Template], ...] = tuple(
    (re.compile(pattern), template)
    for pattern, template in (
        (r"No space left on device|Disk quota exceeded", _resources("The server has no disk space left", _SMALLER)),
        (
            r"Unable to load region from any of the providers",
            _external(
                "A store or catalog at AWS has no region",
                _C.STORAGE_ERROR,
                "who runs this server: set s3_region in [storage], or the region of the catalog",
            ),
        ),
        (
            r"Unable to load credentials from any of the providers|Unable to load an AWS .{0,40}credentials",
            _external(
                "A store or catalog at AWS has no keys",
                _C.STORAGE_ERROR,
                "who runs this server: give the catalog or [storage] its keys",
            ),
        ),
        (
            r"InvalidAccessKeyId|SignatureDoesNotMatch|UnrecognizedClientException|InvalidSignatureException"
            r"|security token included in the request is (?:invalid|expired)",
            _REFUSED_KEYS,
        ),
        (r"Java heap space|GC overhead limit|Cannot reserve \S+ bytes|Unable to acquire \d+ bytes", _MEMORY),
        (
            r"(?:[Ff]ound|Detected) (?:new )?conflicting|Cannot commit.*missing data|Missing required files to delete"
            r"|Table UUID does not match",  # somebody replaced it
            _CONFLICT,
        ),
        (
            r"Max iterations \(\d+\) reached for batch|Maximum recursion depth",
            _resources("The statement is nested too deeply", "split it with a temporary view or a table"),
        ),
        (
            r"Cannot (?:find snapshot with ID|set \S+ to unknown snapshot:) (?P<a>-?\d+)",
            _arguments("Snapshot {a:number} does not exist", _SNAPSHOTS),
        ),
        (
            r"Cannot find matching snapshot ID or reference name for version (?P<a>[^\n]+)",
            _arguments("The table has no snapshot, branch or tag {a:token}", _SNAPSHOTS),
        ),
        (r"Cannot find a snapshot older than", _arguments("The table has no snapshot that old", _SNAPSHOTS)),
        (
            r"Cannot use branch \(does not exist\): (?P<a>[^\n]+)|Branch does not exist: (?P<b>[^\n]+)",
            _arguments("Branch {a:token}{b:token} does not exist"),
        ),
        (r"Tag does not exist: (?P<a>[^\n]+)", _arguments("Tag {a:token} does not exist")),
        (r"Ref (?P<a>\S+) already exists", _semantic("A branch or tag {a:token} already exists")),
        (r"Cannot remove main branch", _semantic("Branch main cannot be dropped")),
        (
            r"Cannot change column type: (?P<a>\S+): (?P<b>[^\n]+) -> (?P<c>[^\n]+)",
            _types("Column {a:token} cannot change from {b:type} to {c:type}"),
        ),
        (
            r"cannot add required column: (?P<a>[^\n]+)",
            _semantic("A new column of a table cannot be NOT NULL: {a:token}", "give it a DEFAULT"),
        ),
        (r"Not a supported type: (?P<a>[^\n]+)", _types("Type {a:type} cannot be stored")),
        (r"Cannot downgrade v\d+ table", _unsupported("format-version cannot be lowered")),
        (r"unsupported format version", _unsupported("This format-version is not supported")),
        (
            r"Cannot find field '(?P<a>[^'\n]+)' in struct",
            _column("Column {a:token} does not exist"),
        ),
        (r"Cannot add duplicate partition field", _semantic("The table already has this partition field")),
        (
            r"Cannot find partition field to remove: (?P<a>[^\n]+)",
            _semantic("The table has no partition field {a:token}"),
        ),
        (
            r"cannot transform (?P<a>\w+) values|Invalid source type (?P<b>\w+) for transform",
            _types("A column of type {a:type}{b:type} cannot be partitioned this way"),
        ),
        (
            r"Cannot add field (?P<a>\S+) as an identifier field: not a required field",
            _semantic("Column {a:token} cannot identify rows: it may be NULL"),
        ),
        (r"Cannot add field (?P<a>\S+) as an identifier field", _column("Column {a:token} does not exist")),
        (r"Transform is not supported", _unsupported("This partition transform does not exist")),
        (
            r"Cannot find source column for partition field",
            _semantic("A column by which the table is partitioned cannot be dropped", "drop the partition field first"),
        ),
        (
            r"Invalid type for (?P<a>\S+): unknown is not supported until v3",
            _unsupported(
                "Column {a:token}: type unknown needs format-version 3",
                "NULL alone has no type; write CAST(NULL AS varchar), or another type",
            ),
        ),
        (
            r"Invalid type for (?P<a>\S+): (?P<b>\w+) is not supported until v(?P<c>\d)",
            _unsupported("Column {a:token}: type {b:type} needs format-version {c:number}"),
        ),
        (
            r"Cannot create required field with unknown type: key",
            _unsupported(
                "The keys of a map have no type, and cannot be stored",
                "an empty map does not say of what it is; write CAST(MAP() AS map(varchar, integer)), or another type",
            ),
        ),
        (r"Illegal sequence boundaries", _arguments("A sequence never reaches its end with this step")),
        (
            r"Unknown row-level operation mode|No enum constant org\.apache\.iceberg",
            _arguments("A property of the table has a value that is not valid", "look at SHOW CREATE TABLE"),
        ),
    )
)
