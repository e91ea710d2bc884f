"""The messages of Flight and Flight SQL.

`flight_pb2` and `flight_sql_pb2` are made of the `.proto` files beside them (`__main__.py` says how). Made by a protoc
of protobuf 6, they run on protobuf 6 and 7.
"""
