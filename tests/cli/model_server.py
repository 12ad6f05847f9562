"""A server of model files on this machine that can cut, lie and stall, for test_pull.py."""

import hashlib
import http.server
import json
import ssl
import threading
from dataclasses import dataclass, field


@dataclass
class Resource:
    """What lies at a path. The defaults serve it as a good server does."""
    content: bytes = b""
    etag: str = '"one"'       # "": none
    status: int = 200
    ranges: bool = True
    if_range: bool = True     # False: a range is sent whatever If-Range says
    range_shift: int = 0      # ranges begin so much later than they should
    total: int | None = None   # what Content-Range says of the whole; None: the truth
    length: int | None = None  # what Content-Length says; None: the truth; -1: not said, then close
    cut_after: int | None = None    # the connection ends after this many bytes
    stall_after: int | None = None  # nothing comes any more after this many bytes
    chunk: int = 1 << 16
    delay: float = 0.0        # seconds between chunks
    redirect: str = ""
    headers: dict = field(default_factory=dict)
    n_failures: int = 0       # this many answers are 503 first
    protocol: str = "HTTP/1.1"
    is_chunked: bool = False  # Transfer-Encoding: chunked, and no Content-Length


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def start_of(self, resource):
        """Where the answer begins; 0: it is the whole."""
        wanted = self.headers.get("Range", "")
        condition = self.headers.get("If-Range")
        if not resource.ranges or not wanted.startswith("bytes="):
            return 0
        if resource.if_range and condition is not None and condition != resource.etag:
            return 0
        return int(wanted[len("bytes="):].split("-")[0])

    def do_GET(self):
        path = self.path.split("?")[0]
        self.server.requests.append((path, dict(self.headers)))
        resource = self.server.resources.get(path, Resource(status=404))
        if resource.n_failures > 0:
            resource.n_failures -= 1
            resource = Resource(status=503)
        try:
            self.answer(resource)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def answer(self, resource):
        self.protocol_version = resource.protocol
        size, start = len(resource.content), self.start_of(resource)
        status = 302 if resource.redirect else resource.status
        if status == 200 and start > 0:
            status = 416 if start >= size else 206
            start += resource.range_shift
        self.send_response(status)
        if resource.etag:
            self.send_header("ETag", resource.etag)
        if status == 206:
            total = size if resource.total is None else resource.total
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{total}")
        if resource.redirect:
            self.send_header("Location", resource.redirect)
        for name, value in resource.headers.items():
            self.send_header(name, value)
        body = resource.content[start:] if status in (200, 206) else b""
        length = len(body) if resource.length is None else resource.length
        if resource.is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif length >= 0:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.send_body(resource, body)
        if length != len(body):
            self.close_connection = True

    def send_body(self, resource, body):
        sent, cut, stall = 0, resource.cut_after, resource.stall_after  # a test may change them
        limits = [limit for limit in (cut, stall) if limit is not None]
        while sent < len(body):
            n = min([resource.chunk, len(body) - sent, *(limit - sent for limit in limits)])
            if n == 0:
                break
            piece = body[sent:sent + n]
            self.wfile.write(b"%x\r\n%s\r\n" % (n, piece) if resource.is_chunked else piece)
            sent += n
            self.server.stop.wait(resource.delay)
        if sent == stall and sent < len(body):
            self.wfile.flush()
            self.server.stop.wait(60)
        if sent < len(body):
            self.close_connection = True
        elif resource.is_chunked:
            self.wfile.write(b"0\r\n\r\n")


class Server(http.server.ThreadingHTTPServer):
    """with Server() as server: server.resources["/m.gguf"] = Resource(...)"""
    daemon_threads = True

    def __init__(self, certificate=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.resources, self.requests, self.stop = {}, [], threading.Event()
        self.scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, *_):
        pass  # a client that trusts no certificate hangs up

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.shutdown()
        self.server_close()

    def url(self, path, host="127.0.0.1"):
        return f"{self.scheme}://{host}:{self.server_port}{path}"

    def add_repository(self, name, files, licence="apache-2.0", **more):
        """files: name -> content. Hashes and sizes are sent in the form that a hub uses."""
        siblings = [{"rfilename": "README.md", "size": 3, "blobId": "0"}]
        for file, content in files.items():
            digest = hashlib.sha256(content).hexdigest()
            siblings.append({"rfilename": file, "size": len(content), "blobId": "1",
                             "lfs": {"sha256": digest, "size": len(content), "pointerSize": 134}})
            self.resources[f"/{name}/resolve/c0ffee/{file}"] = Resource(content, etag="")
        answer = {"id": name, "sha": "c0ffee", "cardData": {"license": licence},
                  "siblings": siblings, **more}
        self.resources[f"/api/models/{name}"] = Resource(json.dumps(answer).encode())

    def ranges(self):
        """The Range of each request, None where there was none."""
        return [headers.get("Range") for _, headers in self.requests]
