# agent.py
"""An agent behind a webhook: WEBHOOK_SECRET=… PORT=8000 python3 agent.py"""
import hashlib, hmac, http.server, json, os, time

SECRET = os.environ["WEBHOOK_SECRET"].encode()


class Agent(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        stamp, given = self.headers.get("X-Parley-Timestamp", "0"), self.headers.get("X-Parley-Signature", "")
        signature = "v1=" + hmac.new(SECRET, f"v1:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(signature.encode(), given.encode()) or abs(time.time() - int(stamp)) > 300:
            return self.send_error(401)
        said = json.loads(body)["message"]["content"]
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"content": "You said: " + said}).encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 8000))), Agent)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
