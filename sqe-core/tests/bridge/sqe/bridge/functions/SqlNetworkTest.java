package sqe.bridge.functions;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import sqe.bridge.Refusal;

class SqlNetworkTest {
  private static boolean contains(String network, String address) {
    return SqlNetwork.contains(UTF8String.fromString(network), UTF8String.fromString(address));
  }

  @ParameterizedTest
  @CsvSource({
    "10.0.0.0/8, 10.1.2.3, true",
    "10.0.0.0/8, 11.1.2.3, false",
    "0.0.0.0/0, 255.255.255.255, true",
    "10.0.0.1/32, 10.0.0.2, false",
    "2001:db8::/32, 2001:db8:1::1, true",
    "2001:db8::/32, 2001:db9::1, false",
    "10.0.0.0/8, ::ffff:10.1.2.3, true",
    "10.0.0.0/8, 2001:db8::1, false",
  })
  void addressesOfNetworks(String network, String address, boolean expected) {
    assertEquals(expected, contains(network, address));
  }

  @ParameterizedTest
  @CsvSource({
    "10.0.0.1, 10.0.0.1",
    "::ffff:1.2.3.4, 1.2.3.4",
    "2001:DB8:0:0:0:0:0:1, 2001:db8::1",
    "2001:db8:0:1:0:0:0:1, 2001:db8:0:1::1",
    "::, ::",
    "::1, ::1",
    "1::, 1::",
    "1:2:3:4:5:6:7:8, 1:2:3:4:5:6:7:8",
    "1:0:3:4:5:6:7:8, 1:0:3:4:5:6:7:8",
  })
  void addressesAreWrittenInOneWay(String text, String expected) {
    assertEquals(expected, SqlNetwork.address(UTF8String.fromString(text)).toString());
  }

  /** None of these may reach a name server. */
  @ParameterizedTest
  @ValueSource(strings = {"localhost", "10.0.0.999", "10.0.0", "1", "abc", ".:", "a.b:c.d", "fe80::1%eth0", "", "example.com:1"})
  void whatIsNoAddressIsRefused(String address) {
    assertThrows(Refusal.class, () -> contains("10.0.0.0/8", address));
    assertThrows(Refusal.class, () -> contains(address + "/8", "10.0.0.1"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"10.0.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.0/9999999999"})
  void whatIsNoNetworkIsRefused(String network) {
    assertThrows(Refusal.class, () -> contains(network, "10.0.0.1"));
  }
}
