"""pyarrow's own Flight client, which knows Flight but not Flight SQL: commands are packed by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
from google.protobuf.any_pb2 import Any as AnyMessage

from sqe_core.protocols.flight.wire import flight_pb2
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql


def packed(message: Any) -> bytes:
    command = AnyMessage()
    command.Pack(message)
    return command.SerializeToString()


class RawClient:
    """Whatever one client has in its hands, another can try."""

    def __init__(self, uri: str, user: str, password: str, *headers: tuple[bytes, bytes]) -> None:
        self.flight = flight.FlightClient(uri)
        self.headers = [self.flight.authenticate_basic_token(user, password), *headers]
        self.options = flight.FlightCallOptions(headers=self.headers, timeout=60)

    def info(self, message: Any) -> flight.FlightInfo:
        """Ask for a statement, or for whatever else a message says."""
        command = sql.CommandStatementQuery(query=message) if isinstance(message, str) else message
        return self.flight.get_flight_info(flight.FlightDescriptor.for_command(packed(command)), self.options)

    def ticket(self, text: str) -> flight.Ticket:
        return self.info(text).endpoints[0].ticket

    def read(self, ticket: flight.Ticket) -> pa.Table:
        return self.flight.do_get(ticket, self.options).read_all()

    def query(self, text: str) -> list[dict[str, Any]]:
        return self.read(self.ticket(text)).to_pylist()

    def update(self, text: str) -> int:
        descriptor = flight.FlightDescriptor.for_command(packed(sql.CommandStatementUpdate(query=text)))
        writer, reader = self.flight.do_put(descriptor, pa.schema([]), self.options)
        with writer:
            writer.done_writing()
            answer = sql.DoPutUpdateResult.FromString(reader.read().to_pybytes())
        return answer.record_count

    def prepare(self, text: str) -> bytes:
        """Prepare a statement and return its handle."""
        (answer,) = self.do("CreatePreparedStatement", packed(sql.ActionCreatePreparedStatementRequest(query=text)))
        result = sql.ActionCreatePreparedStatementResult()
        AnyMessage.FromString(answer).Unpack(result)
        return bytes(result.prepared_statement_handle)

    def do(self, action: str, body: bytes) -> list[bytes]:
        return [each.body.to_pybytes() for each in self.flight.do_action(flight.Action(action, body), self.options)]

    def cancel(self, info: flight.FlightInfo) -> int:
        """Cancel a statement and return the status that the server answers."""
        request = flight_pb2.CancelFlightInfoRequest(info=flight_pb2.FlightInfo.FromString(info.serialize()))
        (answer,) = self.do("CancelFlightInfo", request.SerializeToString())
        return int(flight_pb2.CancelFlightInfoResult.FromString(answer).status)
