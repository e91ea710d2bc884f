package sqe.bridge.functions;

import java.math.BigInteger;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.unsafe.types.UTF8String;
import sqe.bridge.Refusal;

/** Addresses of networks, which are texts here. No argument is ever NULL. */
public final class SqlNetwork {
  private static final String OCTET = "(25[0-5]|2[0-4]\\d|1?\\d?\\d)";
  private static final Pattern V4 = Pattern.compile(OCTET + "(\\." + OCTET + "){3}");
  private static final Pattern V6 = Pattern.compile("[0-9a-fA-F:][0-9a-fA-F:.]*:[0-9a-fA-F:.]*");

  private SqlNetwork() {}

  /** Whether an address is one of a network such as 10.0.0.0/8. */
  public static boolean contains(UTF8String network, UTF8String address) {
    String[] parts = network.toString().split("/", -1);
    byte[] first = read(parts[0]);
    if (parts.length != 2 || !parts[1].matches("\\d{1,3}"))
      throw Refusal.ofArgument("The text is no network such as 10.0.0.0/8");
    int free = first.length * 8 - Integer.parseInt(parts[1]);
    if (free < 0) throw Refusal.ofArgument("The prefix of the network is longer than its address");
    byte[] asked = read(address.toString());
    if (asked.length != first.length) return false;
    return new BigInteger(1, first).shiftRight(free).equals(new BigInteger(1, asked).shiftRight(free));
  }

  /** An address as it is written: IPv6 with the longest zeros left out, IPv4 as such. */
  public static UTF8String address(UTF8String text) {
    byte[] bytes = read(text.toString());
    return UTF8String.fromString(bytes.length == 4 ? joined(bytes, ".") : shortened(bytes));
  }

  public static UTF8String tryAddress(UTF8String text) {
    try {
      return address(text);
    } catch (Refusal refused) {
      return null;
    }
  }

  /** The 16 bytes that addresses are ordered by. */
  public static byte[] bytes(UTF8String text) {
    byte[] read = read(text.toString());
    if (read.length == 16) return read;
    byte[] mapped = new byte[16];
    mapped[10] = mapped[11] = (byte) 0xFF;
    System.arraycopy(read, 0, mapped, 12, 4);
    return mapped;
  }

  private static String joined(byte[] bytes, String point) {
    return IntStream.range(0, bytes.length).mapToObj(at -> String.valueOf(bytes[at] & 0xFF)).collect(Collectors.joining(point));
  }

  private static String shortened(byte[] bytes) {
    int[] groups = IntStream.range(0, 8).map(at -> (bytes[2 * at] & 0xFF) << 8 | bytes[2 * at + 1] & 0xFF).toArray();
    int from = -1;
    int most = 1;
    for (int at = 0; at < 8; at++) {
      int end = at;
      while (end < 8 && groups[end] == 0) end++;
      if (end - at > most) {
        from = at;
        most = end - at;
      }
    }
    StringBuilder out = new StringBuilder();
    for (int at = 0; at < 8; at++) {
      if (at == from) {
        out.append("::");
        at += most - 1;
      } else {
        if (out.length() > 0 && out.charAt(out.length() - 1) != ':') out.append(':');
        out.append(Integer.toHexString(groups[at]));
      }
    }
    return out.toString();
  }

  /** The bytes of an address. Java looks up what is no address, so only what can be nothing else is given to it. */
  private static byte[] read(String text) {
    if (!V4.matcher(text).matches() && !V6.matcher(text).matches()) throw Refusal.ofArgument("The text is no address");
    try {
      return InetAddress.getByName(text).getAddress();
    } catch (UnknownHostException error) {
      throw Refusal.ofArgument("The text is no address");
    }
  }
}
