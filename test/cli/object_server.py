"""Servers for inputs and outputs that are URLs: an S3 server (moto) and plain HTTP, on loopback
addresses only. Requests to the S3 server go through a proxy that can fail in several ways.
"""

import contextlib
import http.client
import http.server
import re
import threading

try:
    from moto.server import ThreadedMotoServer
except ImportError:
    ThreadedMotoServer = None

KEY = "rocksort-key"
ERROR = b"<Error><Code>Made</Code></Error>"
# moto looks at who asks, not at the signature.
OWNER = {"Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/us-east-1/s3/aws4_request, "
                          "SignedHeaders=host, Signature=0"}


class Handler(http.server.BaseHTTPRequestHandler):
    """One request. `self.server.fault` is a function of (method, path) that returns None or a
    fault: a status to answer; (status, content) with or without headers; "close" (the connection
    ends half-way through the answer, or before the request was read); or "stall" (the same, but
    nothing more comes)."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def read_body(self):
        if self.command == "GET":       # libcurl announces a body after 303, and sends none
            self.close_connection |= "Transfer-Encoding" in self.headers
            return b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            pieces = []
            while (size := int(self.rfile.readline(), 16)) > 0:
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status, headers, body, n_sent=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:n_sent])
            self.wfile.flush()

    def stop(self, fault):
        if fault == "stall":
            self.server.released.wait(60)
        self.close_connection = True

    def handle_request(self):
        self.server.requests.append(f"{self.command} {self.path}")
        fault = self.server.fault(self.command, self.path)
        if isinstance(fault, int):
            fault = fault, ERROR
        if fault and self.command != "GET" and not isinstance(fault, tuple):
            self.stop(fault)
            return
        body = self.read_body()
        if isinstance(fault, tuple):
            status, content, *headers = fault
            self.answer(status, headers, content)
            return
        status, headers, content = self.server.respond(self, body)
        if fault:
            self.answer(status, headers, content, len(content) // 2)
            self.stop(fault)
        else:
            self.answer(status, headers, content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request


class Server(http.server.ThreadingHTTPServer):
    """Base of the servers: `respond(request, body)` returns status, headers and content."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests, self.released = [], threading.Event()
        self.fault = lambda method, path: None
        self.host = f"127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass        # the client ends connections, too

    def reset(self):
        self.released.set()
        self.released = threading.Event()
        self.requests.clear()
        self.fault = lambda method, path: None

    def end(self):
        self.released.set()
        self.shutdown()
        self.server_close()


class WebServer(Server):
    """Plain HTTP: GET with or without Range, and PUT. `files` has contents by path."""

    def __init__(self):
        super().__init__()
        self.files, self.with_range = {}, True

    def respond(self, request, body):
        if request.command == "PUT":
            self.files[request.path] = body
            return 201, [], b""
        content = self.files.get(request.path)
        if content is None:
            return 404, [], b"not here"
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("Range", ""))
        if not wanted or not self.with_range:
            return 200, [], content
        begin, end = int(wanted[1]), int(wanted[2] or len(content) - 1)
        headers = [("Content-Range", f"bytes {begin}-{end}/{len(content)}")]
        return 206, headers, content[begin:end + 1]


class ObjectServer(Server):
    """An S3 server that knows the access key KEY only."""

    def __init__(self):
        self.moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.moto.start()
        self.moto_host = "127.0.0.1:%d" % self.moto.get_host_and_port()[1]
        super().__init__()

    def forward(self, method, path, body=b"", headers=None):
        connection = http.client.HTTPConnection(self.moto_host, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body, OWNER if headers is None else headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()

    def respond(self, request, body):
        if f"Credential={KEY}/" not in request.headers.get("Authorization", ""):
            return 403, [], b"<Error><Code>AccessDenied</Code></Error>"
        names = ("Authorization", "Range", "Host", "X-Amz-Date", "X-Amz-Content-SHA256")
        headers = {name: request.headers[name] for name in names if name in request.headers}
        status, headers, content = self.forward(request.command, request.path, body, headers)
        left_out = ("content-length", "connection", "date", "server", "transfer-encoding")
        return status, [h for h in headers if h[0].lower() not in left_out], content

    def put(self, path, content):
        status, _, answer = self.forward("PUT", path, content)
        assert status == 200, answer

    def get(self, path):
        status, _, content = self.forward("GET", path)
        return content if status == 200 else None

    def names(self, bucket):
        return self.keys(f"/{bucket}?list-type=2")

    def uploads(self, bucket):
        """Uploads that were begun, and neither completed nor aborted."""
        return self.keys(f"/{bucket}?uploads")

    def keys(self, path):
        return re.findall(r"<Key>([^<]*)", self.forward("GET", path)[2].decode())

    def end(self):
        super().end()
        self.moto.stop()
