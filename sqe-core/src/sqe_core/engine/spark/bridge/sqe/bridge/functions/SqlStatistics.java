package sqe.bridge.functions;

import java.math.RoundingMode;
import java.text.DecimalFormat;
import java.text.DecimalFormatSymbols;
import java.util.Locale;
import org.apache.commons.math3.distribution.BetaDistribution;
import org.apache.commons.math3.distribution.NormalDistribution;
import org.apache.commons.math3.distribution.TDistribution;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;
import sqe.bridge.Refusal;

/** Distributions, vectors and what else is computed of several numbers, called by templates. No argument is ever NULL. */
public final class SqlStatistics {
  private static final double EARTH_KM = 6371.01;
  private static final int MOST_COMBINATIONS = 100000;
  private static final String[] THOUSANDS = {"", "K", "M", "B", "T", "Q"};

  private SqlStatistics() {}

  private static void check(boolean holds, String otherwise) {
    if (!holds) throw Refusal.ofArgument(otherwise);
  }

  public static double normalCdf(double mean, double deviation, double value) {
    check(deviation > 0, "The standard deviation must be greater than zero");
    return new NormalDistribution(null, mean, deviation).cumulativeProbability(value);
  }

  public static double inverseNormalCdf(double mean, double deviation, double probability) {
    check(deviation > 0, "The standard deviation must be greater than zero");
    check(probability > 0 && probability < 1, "The probability must be between 0 and 1");
    return new NormalDistribution(null, mean, deviation).inverseCumulativeProbability(probability);
  }

  public static double betaCdf(double a, double b, double value) {
    check(a > 0 && b > 0, "a and b must be greater than zero");
    check(value >= 0 && value <= 1, "The value must be between 0 and 1");
    return new BetaDistribution(null, a, b).cumulativeProbability(value);
  }

  public static double inverseBetaCdf(double a, double b, double probability) {
    check(a > 0 && b > 0, "a and b must be greater than zero");
    check(probability >= 0 && probability <= 1, "The probability must be between 0 and 1");
    return new BetaDistribution(null, a, b).inverseCumulativeProbability(probability);
  }

  public static double tCdf(double value, double degrees) {
    check(degrees > 0, "The degrees of freedom must be greater than zero");
    return new TDistribution(null, degrees).cumulativeProbability(value);
  }

  public static double tPdf(double value, double degrees) {
    check(degrees > 0, "The degrees of freedom must be greater than zero");
    return new TDistribution(null, degrees).density(value);
  }

  /** A bound of Wilson's interval of a proportion: the lower one with side -1, the upper one with 1. */
  public static double wilson(long successes, long trials, double z, int side) {
    check(successes >= 0 && trials > 0 && successes <= trials, "The successes must be between 0 and the trials");
    check(z >= 0, "The score must not be negative");
    double p = (double) successes / trials;
    double n = trials;
    double spread = Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    return (p + z * z / (2 * n) + side * z * spread) / (1 + z * z / n);
  }

  public static double dotProduct(ArrayData left, ArrayData right) {
    check(left.numElements() == right.numElements(), "The arrays must have the same length");
    double sum = 0;
    for (int i = 0; i < left.numElements(); i++) sum += left.getDouble(i) * right.getDouble(i);
    return sum;
  }

  public static double euclideanDistance(ArrayData left, ArrayData right) {
    check(left.numElements() == right.numElements(), "The arrays must have the same length");
    double sum = 0;
    for (int i = 0; i < left.numElements(); i++) {
      double difference = left.getDouble(i) - right.getDouble(i);
      sum += difference * difference;
    }
    return Math.sqrt(sum);
  }

  public static double cosineSimilarity(ArrayData left, ArrayData right) {
    double product = dotProduct(left, right);
    double lengths = Math.sqrt(dotProduct(left, left)) * Math.sqrt(dotProduct(right, right));
    check(lengths != 0, "A vector must not have the length zero");
    return product / lengths;
  }

  /** Along the surface of the earth, in kilometers. */
  public static double greatCircle(double latitude1, double longitude1, double latitude2, double longitude2) {
    check(Math.abs(latitude1) <= 90 && Math.abs(latitude2) <= 90, "Latitudes must be between -90 and 90");
    check(Math.abs(longitude1) <= 180 && Math.abs(longitude2) <= 180, "Longitudes must be between -180 and 180");
    double from = Math.toRadians(latitude1);
    double to = Math.toRadians(latitude2);
    double turn = Math.toRadians(longitude1 - longitude2);
    double across = Math.cos(to) * Math.sin(turn);
    double along = Math.cos(from) * Math.sin(to) - Math.sin(from) * Math.cos(to) * Math.cos(turn);
    double straight = Math.sin(from) * Math.sin(to) + Math.cos(from) * Math.cos(to) * Math.cos(turn);
    return Math.atan2(Math.hypot(across, along), straight) * EARTH_KM;
  }

  /** Which places of `size` elements are in each combination of `count` of them, from 1. */
  public static ArrayData combinations(int size, int count) {
    check(count >= 0 && count <= 5, "Combinations have 0 to 5 elements");
    java.util.List<Object> found = new java.util.ArrayList<>();
    int[] places = new int[count];
    for (int i = 0; i < count; i++) places[i] = i + 1;
    while (count <= size) {
      found.add(new GenericArrayData(places.clone()));
      check(found.size() <= MOST_COMBINATIONS, "There are too many combinations");
      int at = count - 1;
      while (at >= 0 && places[at] == size - count + at + 1) at--;
      if (at < 0) break;
      places[at]++;
      for (int i = at + 1; i < count; i++) places[i] = places[i - 1] + 1;
    }
    return new GenericArrayData(found.toArray());
  }

  /** 123K, 1.23B: three digits and a letter. */
  public static UTF8String formatNumber(double value) {
    double left = value;
    int power = 0;
    while (Math.abs(left) >= 1000 && power < THOUSANDS.length - 1) {
      left /= 1000;
      power++;
    }
    String pattern = Math.abs(left) < 10 ? "0.##" : Math.abs(left) < 100 ? "0.#" : "0";
    DecimalFormat format = new DecimalFormat(pattern, DecimalFormatSymbols.getInstance(Locale.ROOT));
    format.setRoundingMode(RoundingMode.HALF_UP);
    return UTF8String.fromString(format.format(left) + THOUSANDS[power]);
  }
}
