#!/bin/sh
# `scalemodel page`: what it sends, to whom, and how it refuses. On a page of two files beside copies of the programs.
. "$(dirname "$0")/runner.sh"
[ -x "$(dirname "$program")/scalemodel-page" ] || { echo "1..0 # SKIP libmicrohttpd is not installed" && exit 0; }
mkdir "$place/bin"
cp "$program" "$(dirname "$program")/scalemodel-page" "$place/bin/"
"$place/bin/scalemodel" page --port 0 2>&1 | grep -q 'the page is not installed' && echo "ok 1 - refused where there is no page" ||
    echo "not ok 1 - refused where there is no page"
mkdir "$place/bin/page" "$place/bin/page/inner"
echo '<p>page' >"$place/bin/page/index.html"
echo 'library' >"$place/bin/page/scalemodel.js"
echo 'secret' >"$place/bin/page/notes.txt"
echo 'secret' >"$place/bin/secret.js"
"$place/bin/scalemodel" page --port 0 >"$place/address" &
server=$!
until_true [ -s "$place/address" ]
python3 - "$place" "$server" <<'END'
import http.client, os, re, signal, socket, subprocess, sys
place, server = sys.argv[1], int(sys.argv[2])
port = int(re.search(r":(\d+)/", open(place + "/address").read())[1])
n = 1
def check(name, holds):
    global n
    n += 1
    print("ok" if holds else "not ok", n, "-", name)
def ask(path, method="GET", host=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    c.putrequest(method, path, skip_host=True)
    c.putheader("Host", host or f"127.0.0.1:{port}")
    c.endheaders()
    r = c.getresponse()
    return r.status, r.read(), dict(r.getheaders())
status, body, headers = ask("/")
check("/ is the page", status == 200 and body == b"<p>page\n" and headers["Content-Type"].startswith("text/html"))
check("with a strict policy", "default-src 'none'" in headers["Content-Security-Policy"]
      and "unsafe-eval'" not in headers["Content-Security-Policy"].replace("wasm-unsafe-eval'", ""))
check("a script", ask("/scalemodel.js")[1:2] == (b"library\n",))
check("localhost is this machine", ask("/", host=f"localhost:{port}")[0] == 200)
check("HEAD has no body", ask("/", "HEAD")[:2] == (200, b""))
check("no file of another kind, folder or place", all(ask(p)[0] == 404 for p in
      ("/notes.txt", "/inner", "/../secret.js", "/..%2fsecret.js", "/%2e%2e/secret.js", "/absent.js", "//etc/passwd", "/.js")))
check("no other name", ask("/", host="elsewhere.example")[0] == 403 and ask("/", host="127.0.0.1:1")[0] == 403)
check("no other method", ask("/", "POST")[0] == 405)
other = [a[4][0] for a in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET) if not a[4][0].startswith("127.")]
def refused(address):
    try:
        socket.create_connection((address, port), 2).close()
        return False
    except OSError:
        return True
check("nothing listens on other addresses", all(refused(a) for a in other))
again = subprocess.run([place + "/bin/scalemodel", "page", "--port", str(port)], capture_output=True, text=True)
check("a port that is taken is an error", again.returncode == 4 and "cannot listen on port" in again.stderr)
os.kill(server, signal.SIGTERM)
print(f"1..{n}")
END
wait "$server" || echo "not ok 12 - it ends with status 0"
