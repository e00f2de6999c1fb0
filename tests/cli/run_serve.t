#!/bin/sh
# `run serve`: an engine on ranks. Clients over HTTP get the texts of `run generate`, whatever else they ask is refused
# by its name, and a full queue says so; a trace is served as it says, with the bytes predicted, on threads and on each
# MPI that was there to build with.
. "$(dirname "$0")/runner.sh"
folder="$(dirname "$program")"
[ -x "$folder/scalemodel-run" ] || { echo "1..0 # no BLAS" && exit 0; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
run_file "$root/tests/cli/run_serve.golden"

cd "$place/work" || exit 1
scalemodel run train inputs/tiny-llama.json --data inputs/tiny-llama.json --seq 32 --steps 12 --rate 1e-2 --with threads \
    --checkpoint tiny-llama.safetensors >/dev/null

serve() { # serve BACKEND OPTION...: requests of a trace; what does not depend on the clock
    backend="$1"
    shift
    scalemodel run serve inputs/tiny-llama.json --checkpoint tiny-llama.safetensors --with "$backend" --trace trace.csv \
        --longest 64 --page 4 --batch 3 --json "$@" | grep -e '"requests"' -e '"finished"' -e '"refused"' -e '"bytes_equal"' \
        -e '"prompt"' -e '"output"'
}
awk 'BEGIN { print "arrival_s,prompt_tokens,output_tokens,prefix_id,prefix_tokens"
    for (i = 0; i < 12; i++) print i / 50 "," 5 + i * 7 % 23 "," 1 + i * 5 % 11 "," i % 2 + 1 "," 4
    print "0.3,60,20,0,0" }' >trace.csv
serve threads >whole.out
check "a trace is served whole, but for what is too long" \
    "grep -q '\"requests\": 12,' whole.out && grep -q '\"refused\": 1,' whole.out && grep -q '\"bytes_equal\": true' whole.out"
check "on two ranks, with prefixes kept and a cache that is too small" \
    "serve threads --plan tensor=2 --prefix-cache --cache 80 | cmp - whole.out && serve threads --plan data=2 --policy static |
    cmp - whole.out && serve threads --plan context=2 --policy continuous --csv rows.csv | cmp - whole.out"
check "--csv has a row for each" "[ \"\$(wc -l <rows.csv)\" -eq 13 ] && head -n 1 rows.csv | grep -q '^request,arrival_s'"
for mpi in openmpi mpich; do
    [ -x "$folder/scalemodel-run-$mpi" ] || continue
    check "and on $mpi" "serve $mpi --plan tensor=2 | cmp - whole.out"
done

"$program" run serve inputs/tiny-llama.json --checkpoint tiny-llama.safetensors --with self --port 0 >here.out 2>here.err &
server=$!
until_true grep -q 'is served at\|without libmicrohttpd' here.err
if grep -q 'without libmicrohttpd' here.err; then
    wait "$server"
    echo "1..$tests"
    exit $((failures > 0))
fi
kill -TERM "$server"
check "it ends with status 0 and its page when it is told to" "wait $server && grep -q '^0 requests' here.out"

python3 - "$program" "$tests" "$root" <<'END'
import http.client, json, os, re, signal, socket, subprocess, sys, threading, time
program, n = sys.argv[1], int(sys.argv[2])
def check(name, holds):
    global n
    n += 1
    print("ok" if holds else "not ok", n, "-", name)
prompts = ['"hidden', '  "max_pos', "x"]
def generate(prompt):
    answer = subprocess.run([program, "run", "generate", "inputs/tiny-llama.json", "--checkpoint", "tiny-llama.safetensors",
                             "--prompt", prompt, "--tokens", "12", "--with", "self", "--json"], capture_output=True, text=True)
    return json.loads(answer.stdout)["texts"][0]["bytes"]
wanted = [generate(p) for p in prompts]

class Server:
    def __init__(self, *options, model="inputs/tiny-llama"):
        self.run = subprocess.Popen([program, "run", "serve", model + ".json", "--checkpoint", model[model.rfind("/") + 1:] + ".safetensors",
                                     "--port", "0", "--longest", "128", "--page", "4", *options], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+)/v1", self.run.stderr.readline())[1])
    def ask(self, body, headers={}, method="POST", path="/v1/completions"):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request(method, path, body if isinstance(body, (bytes, type(None))) else json.dumps(body),
                  {"Content-Type": "application/json", **headers})
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        return r.status, text, r.getheader("Retry-After")
    def complete(self, **body):
        return json.loads(self.ask(body)[1])
    def end(self):
        self.run.send_signal(signal.SIGTERM)
        out, err = self.run.communicate(timeout=60)
        return self.run.returncode, out

def at_once(server, times):
    answers = {}
    def one(i):
        answers[i] = server.complete(prompt=prompts[i % 3], max_tokens=12, temperature=0)["choices"][0]["token_ids"]
    threads = [threading.Thread(target=one, args=(i,)) for i in range(times)]
    for t in threads: t.start()
    for t in threads: t.join()
    return [answers[i] for i in range(times)]

s = Server("--with", "threads", "--plan", "tensor=2", "--prefix-cache", "--batch", "4", "--chunk", "16")
check("texts are those of run generate, of many clients at once", at_once(s, 18) == 6 * wanted)
whole = s.complete(prompt=prompts[0], max_tokens=12, temperature=0)
check("with text, use and reason", bytes(wanted[0]).decode(errors="replace") == whole["choices"][0]["text"]
      and whole["usage"] == {"prompt_tokens": 7, "completion_tokens": 12, "total_tokens": 19}
      and whole["choices"][0]["finish_reason"] == "length")
numbers = s.complete(prompt=list(prompts[0].encode()), max_tokens=12, temperature=0)
check("and so of numbers", numbers["choices"][0]["token_ids"] == wanted[0] and numbers["choices"][0]["text"] == "")
status, text, _ = s.ask({"prompt": prompts[0], "max_tokens": 12, "temperature": 0, "stream": True,
                         "stream_options": {"include_usage": True}})
events = text.strip().split("\n\n")
parts = [json.loads(e[len("data: "):]) for e in events[:-1]]
check("a stream gives the same, part by part", events[-1] == "data: [DONE]" and len(parts) > 1
      and sum((c["token_ids"] for p in parts for c in p["choices"]), []) == wanted[0]
      and parts[-1]["usage"]["completion_tokens"] == 12 and parts[-2]["choices"][0]["finish_reason"] == "length")
stop = bytes(wanted[0][5:7]).decode(errors="replace")
first = bytes(wanted[0]).find(bytes(wanted[0][5:7]))
stopped = s.complete(prompt=prompts[0], max_tokens=12, temperature=0, stop=[stop])
check("a stop ends it and is not in it", stopped["choices"][0]["token_ids"] == wanted[0][:first]
      and stopped["choices"][0]["finish_reason"] == "stop")
drawn = [s.complete(prompt="a", max_tokens=8, seed=5)["choices"][0]["token_ids"] for _ in range(2)]
check("a seed draws the same again", drawn[0] == drawn[1])
def refused(status, words, *args, **more):
    got = s.ask(*args, **more)
    return got[0] == status and words in json.loads(got[1])["error"]["message"]
check("what it cannot do is refused by its name", all([
    refused(400, "top_p can be 1 here", {"prompt": "x", "top_p": 0.5}),
    refused(400, 'the nearest is "max_tokens"', {"prompt": "x", "max_token": 5}),
    refused(400, "max_tokens is a whole number from 1 to 127", {"prompt": "x", "max_tokens": 128}),
    refused(400, "a prompt has from 1 to 127 bytes", {"prompt": "x" * 128}),
    refused(400, "a prompt has from 1 to 127 bytes", {"prompt": ""}),
    refused(400, "a word is a whole number from 0 to 255", {"prompt": [1, 256]}),
    refused(400, "one prompt a request", {"prompt": ["a", "b"]}),
    refused(400, "a temperature lies between 0 and 100", {"prompt": "a", "temperature": -1}),
    refused(400, "the model that is served", {"prompt": "a", "model": "gpt-4"}),
    refused(400, "at most 4 stops", {"prompt": "a", "stop": ["a"] * 5}),
    refused(400, "not valid JSON", b"{"), refused(400, "a completion needs a prompt", {}),
    refused(413, "4 MiB", b" " * (5 << 20)), refused(415, "application/json", {"prompt": "x"}, {"Content-Type": "text/plain"}),
    refused(403, "127.0.0.1", {"prompt": "x"}, {"Host": "elsewhere.example"}),
    refused(404, "/v1/completions", None, method="GET", path="/v1/chat/completions"),
    refused(405, "POST", None, method="GET")]))
check("models and health are told", json.loads(s.ask(None, method="GET", path="/v1/models")[1])["data"][0]["id"] == "tiny-llama"
      and s.ask(None, method="GET", path="/health")[0] == 200)
other = [a[4][0] for a in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET) if not a[4][0].startswith("127.")]
def closed(address):
    try:
        socket.create_connection((address, s.port), 2).close()
        return False
    except OSError:
        return True
check("nothing listens on other addresses", all(closed(a) for a in other))
status, page = s.end()
check("its page counts them, and the bytes were those predicted", status == 0 and "24 requests" in page
      and "the bytes were those predicted" in page and "tokens found" in page)

s = Server("--with", "self", "--batch", "1", "--queue", "1")
lock, codes = threading.Lock(), []
def code():
    got = s.ask({"prompt": "x", "max_tokens": 120, "temperature": 0})
    with lock: codes.append((got[0], got[2]))
threads = [threading.Thread(target=code) for _ in range(12)]
for t in threads: t.start()
for t in threads: t.join()
check("a full queue says so", (429, "1") in codes and (200, None) in codes and len(codes) == 12)
c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
c.request("POST", "/v1/completions", json.dumps({"prompt": "x", "max_tokens": 120, "temperature": 0, "stream": True}),
          {"Content-Type": "application/json"})
c.getresponse().read(1)
s.run.send_signal(signal.SIGTERM)
out, _ = s.run.communicate(timeout=60)
check("what has begun is answered before it ends", s.run.returncode == 0 and "requests found the queue full" in out)
s = Server("--with", "self", "--patience", "1s")
def cut_off(*parts):
    """Of a client that drips zeros behind some text, until it is."""
    with socket.create_connection(("127.0.0.1", s.port), 60) as c:
        try:
            for part in parts:
                c.sendall(part)
            for _ in range(1200):
                c.sendall(b"0")
                c.settimeout(0.05)
                try:
                    return c.recv(1) == b""
                except socket.timeout:
                    pass
        except OSError:
            return True
    return False
head = b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % s.port
ends = []
slow = [threading.Thread(target=lambda parts=parts: ends.append(cut_off(*parts))) for parts in
        ([b""], [head + b"X: "], [head + b"Content-Type: application/json\r\nContent-Length: 9999\r\n\r\n"])]
for t in slow: t.start()
served = at_once(s, 3) == wanted
for t in slow: t.join()
check("who takes longer over a request than --patience is cut off, others are served", ends == [True] * 3 and served
      and at_once(s, 3) == wanted and s.end()[0] == 0)

# Pictures: each prompt has the words of run generate, alone and beside others, drawn so that what is seen decides.
import base64, random, struct
config = json.load(open(os.path.join(sys.argv[3], "tests/reference/seen/qwen3_vl_deep.json")))["config"]
json.dump(config, open("seeing.json", "w"))
quiet = {"stdout": subprocess.DEVNULL, "check": True}
subprocess.run([program, "run", "train", "seeing.json", "--as", "qwen3_vl_seeing", "--data", "seeing.json", "--seq", "48", "--steps", "30",
                "--rate", "2e-2", "--with", "self", "--checkpoint", "seeing.safetensors"], **quiet)
def tensor(shape, seed, scale=1):
    numbers = random.Random(seed)
    data = b"".join(struct.pack("<f", scale * numbers.uniform(-1, 1)) for _ in range(shape[0] * shape[1]))
    head = json.dumps({"pixel_values": {"dtype": "F32", "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    return struct.pack("<Q", len(head)) + head + data
def encoded(*args): return base64.b64encode(tensor(*args)).decode()
picture = [encoded([64, 24], i, 1 + 40 * i) for i in range(3)]
open("one.st", "wb").write(tensor([64, 24], 0))
open("other.st", "wb").write(tensor([64, 24], 1, 41))
both = [tensor([64, 24], i, 1 + 40 * i)[-64 * 24 * 4:] for i in (1, 2)]
head = json.dumps({"pixel_values": {"dtype": "F32", "shape": [128, 24], "data_offsets": [0, 128 * 24 * 4]}}).encode()
open("both.st", "wb").write(struct.pack("<Q", len(head)) + head + b"".join(both))
seen = [([0], "one.st", [65, 66, 255, 67]), ([1], "other.st", [65, 66, 255, 67]), ([1, 2], "both.st", [65, 255, 70, 255, 68]),
        ([0], "one.st", [7, 8, 9]), ([], None, [7, 8, 9])]
def words_of(features, ids):
    answer = subprocess.run([program, "run", "generate", "seeing.json", "--checkpoint", "seeing.safetensors", "--ids",
                             ",".join(map(str, ids)), "--tokens", "10", "--temperature", "1.5", "--seed", "7", "--with", "self", "--json",
                             *(["--features", features] if features else [])], capture_output=True, text=True)
    return json.loads(answer.stdout)["texts"][0]["tokens"]
wanted = [words_of(features, ids) for _, features, ids in seen]
check("what is seen decides", wanted[0] != wanted[1] and wanted[3] != wanted[4])
def look(server, i):
    return server.complete(prompt=seen[i][2], images=[picture[k] for k in seen[i][0]], max_tokens=10, temperature=1.5,
                           seed=7)["choices"][0]["token_ids"]
def look_at_once(server, times):
    answers = {}
    threads = [threading.Thread(target=lambda i=i: answers.update({i: look(server, i % len(seen))})) for i in range(times)]
    for t in threads: t.start()
    for t in threads: t.join()
    return [answers[i] for i in range(times)]
for options in (["--with", "threads", "--plan", "tensor=2", "--prefix-cache", "--batch", "3", "--chunk", "7"],
                ["--with", "threads", "--plan", "data=2", "--cache", "136", "--policy", "continuous"],
                ["--with", "threads", "--plan", "pipeline=2", "--prefix-cache", "--cache", "132"]):
    s = Server("--pictures", "2", *options, model="seeing")
    check("pictures are seen as by run generate: " + " ".join(options[2:]), [look(s, i) for i in range(len(seen))] == wanted
          and look_at_once(s, 15) == 3 * wanted)
    if "tensor=2" in options:
        check("what is no picture is refused", all([
            refused(400, "this engine sees 2", {"prompt": [1], "images": 3 * picture[:1]}),
            refused(400, "safetensors in base64", {"prompt": [1], "images": ["!!!!"]}),
            refused(400, "safetensors in base64", {"prompt": [1], "images": [5]}),
            refused(400, "does not lie inside the file", {"prompt": [1], "images": [picture[0][:-8]]}),
            refused(400, "ends before its header", {"prompt": [1], "images": ["AAAA"]}),
            refused(400, "its 64 patches of 24 numbers", {"prompt": [1], "images": [encoded([2, 24], 0)]}),
            refused(400, "each of images is one picture", {"prompt": [1], "images": [encoded([128, 24], 0)]}),
            refused(400, "within -100 and 100", {"prompt": [1], "images": [encoded([64, 24], 0, 1e9)]}),
            refused(400, "3 times: 1, once for a picture, or 16", {"prompt": [255] * 3, "images": picture[:1]}),
            refused(400, "with its pictures the prompt has 136 words", {"prompt": [1] * 120, "images": picture[:1]}),
            refused(400, "a list of pictures", {"prompt": [1], "images": "x"}),
            refused(413, "16 MiB", b" " * (17 << 20))]))
    status, page = s.end()
    check("the bytes were those predicted", status == 0 and "the bytes were those predicted" in page)
def price_of(pictures): # 40 words of a prompt, 16 of each picture; an answer of one
    s = Server("--pictures", "2", "--with", "self", "--json", model="seeing")
    s.complete(prompt=[255] * pictures + [1] * (40 - 16 * pictures), images=picture[:pictures], max_tokens=1)
    return json.loads(s.end()[1])["steps"]["prefill"]["predicted_s"]
none, one, two = map(price_of, range(3))
check("a step has the price of the pictures that are seen in it, and no other", 0 < none < one < two < 2.5 * one - 1.5 * none)
def simulated(*options):
    answer = subprocess.run([program, "run", "serve", "seeing.json", "--checkpoint", "seeing.safetensors", "--with", "self", "--qps", "100",
                             "--requests", "6", "--prompt", "24", "--output", "4", "--json", *options], capture_output=True, text=True)
    return json.loads(answer.stdout)["latency"]["ttft_s"]["simulated"]["p50"]
check("requests of a trace have none, and are simulated as without --pictures, but for what each step adds of them",
      simulated("--pictures", "2") == simulated("--pictures", "1") < 1.01 * simulated())
print(f"1..{n}")
END
