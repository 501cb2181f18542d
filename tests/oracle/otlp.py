"""Receives OTLP over HTTP and decodes its protobuf, with nothing but Python's own library.

Takes requests as they come over the wire; gives LogRecords as plain values, by the path they were posted to. An AnyValue
becomes None, str, bool, int, float, bytes, list or dict, so that its kind is the value's type. Never repairs anything:
what does not decode is an error, which the report shows.
"""

import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Record:
    """One LogRecord."""

    time: int = 0
    observed: int = 0
    severity: int = 0
    severity_text: str = ""
    body: object = None
    attributes: dict = field(default_factory=dict)
    trace_id: str = ""
    span_id: str = ""
    event_name: str = ""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """The fields of a message: number and value, which is an int or, for what has a length, the bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind in (1, 5):
            width = 8 if kind == 1 else 4
            value, at = int.from_bytes(data[at : at + width], "little"), at + width
        elif kind == 2:
            length, at = varint(data, at)
            if at + length > end:
                raise ValueError("a length beyond the end of the message")
            value, at = data[at : at + length], at + length
        else:
            raise ValueError(f"wire type {kind}")
        yield tag >> 3, value


def any_value(data):
    result = None
    for number, value in fields(data):
        if number == 1:
            result = bytes(value).decode("utf-8")
        elif number == 2:
            result = bool(value)
        elif number == 3:
            result = value - (1 << 64) if value >= 1 << 63 else value
        elif number == 4:
            result = struct.unpack("<d", value.to_bytes(8, "little"))[0]
        elif number == 5:
            result = [any_value(item) for at, item in fields(value) if at == 1]
        elif number == 6:
            result = key_values(item for at, item in fields(value) if at == 1)
        elif number == 7:
            result = bytes(value)
        else:
            raise ValueError(f"AnyValue has no field {number}")
    return result


def key_values(items):
    result = {}
    for item in items:
        parts = dict(fields(item))
        key = bytes(parts.get(1, b"")).decode("utf-8")
        if key in result:
            raise ValueError(f"the key {key!r} twice")
        result[key] = any_value(parts.get(2, b""))
    return result


def log_record(data):
    record, attributes = Record(), []
    for number, value in fields(data):
        if number == 1:
            record.time = value
        elif number == 2:
            record.severity = value
        elif number == 3:
            record.severity_text = bytes(value).decode("utf-8")
        elif number == 5:
            record.body = any_value(value)
        elif number == 6:
            attributes.append(value)
        elif number == 9:
            record.trace_id = bytes(value).hex()
        elif number == 10:
            record.span_id = bytes(value).hex()
        elif number == 11:
            record.observed = value
        elif number == 12:
            record.event_name = bytes(value).decode("utf-8")
    record.attributes = key_values(attributes)
    return record


def log_records(request):
    """The LogRecords of an ExportLogsServiceRequest, in order."""
    for resource in (value for number, value in fields(memoryview(request)) if number == 1):
        for scope in (value for number, value in fields(resource) if number == 2):
            for number, value in fields(scope):
                if number == 2:
                    yield log_record(value)


class Receiver:
    """An OTLP server on a free port of the loopback address; it accepts everything and keeps it until it is taken."""

    def __init__(self):
        self._lock = threading.Lock()
        self._requests = {}
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # The answer is two writes: without this each would wait for the other's ack.
            disable_nagle_algorithm = True

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                with receiver._lock:
                    receiver._requests.setdefault(self.path, []).append(body)
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, path):
        """The records posted to this path so far, in the order of arrival; forgets them."""
        with self._lock:
            requests = self._requests.pop(path, [])
        return [record for request in requests for record in log_records(request)]

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
