package sqe.bridge.functions;

import java.math.BigInteger;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.regex.Pattern;
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
