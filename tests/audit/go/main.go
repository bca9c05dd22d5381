// Judge checkpoints, inclusion proofs and consistency proofs with Go's own sumdb/note and sumdb/tlog.
//
// Reads one JSON object a line on standard input and writes one line for each: "ok", or "no: " and why. What a
// proof file looks like (c2sp.org/tlog-proof, c2sp.org/tlog-witness) is read here; whether a signature, a path or
// a root holds is decided by the packages the Go checksum database is verified with. Of a log that is served as tiles
// (c2sp.org/tlog-tiles) tlog makes the proofs itself, from tiles that it fetches and checks.
//
// Build: GO111MODULE=off GOPATH=/usr/share/gocode go build (Debian: golang-go, golang-golang-x-mod-dev).
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A question is one line of input. Byte strings are base64 in JSON.
type question struct {
	Kind   string `json:"kind"`   // "checkpoint", "inclusion" or "consistency"; from tiles, "prove" or "extend"
	Vkey   string `json:"vkey"`   // the log's keys, one a line
	Record []byte `json:"record"` // inclusion: the entry
	Old    []byte `json:"old"`    // consistency and extend: the earlier checkpoint
	Text   []byte `json:"text"`   // the checkpoint or the proof file; from tiles, the one served if this is empty
	Seq    int64  `json:"seq"`    // prove: which record it is
	URL    string `json:"url"`    // from tiles: where checkpoint and tile/ are
	Token  string `json:"token"`  // from tiles: what the server wants to see
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	decoder := json.NewDecoder(in)
	for decoder.More() {
		var q question
		if err := decoder.Decode(&q); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if err := judge(q); err != nil {
			fmt.Fprintf(out, "no: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Fprintln(out, "ok")
		}
	}
}

func judge(q question) error {
	var keys []note.Verifier
	for _, vkey := range strings.Split(q.Vkey, "\n") {
		key, err := note.NewVerifier(vkey)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	switch q.Kind {
	case "checkpoint":
		_, _, err := openCheckpoint(q.Text, keys)
		return err
	case "inclusion":
		text := strings.TrimPrefix(string(q.Text), header)
		if text == string(q.Text) {
			return errors.New("no tlog-proof header")
		}
		index, hashes, size, root, err := readProof(text, "index ", keys)
		if err != nil {
			return err
		}
		return tlog.CheckRecord(tlog.RecordProof(hashes), size, root, index, tlog.RecordHash(q.Record))
	case "consistency":
		oldSize, oldRoot, err := openCheckpoint(q.Old, keys)
		if err != nil {
			return err
		}
		old, hashes, size, root, err := readProof(string(q.Text), "old ", keys)
		if err != nil {
			return err
		}
		if old != oldSize {
			return fmt.Errorf("proof from %d records, checkpoint of %d", old, oldSize)
		}
		return tlog.CheckTree(tlog.TreeProof(hashes), size, root, old, oldRoot)
	}
	if q.Kind != "prove" && q.Kind != "extend" {
		return fmt.Errorf("unknown kind %q", q.Kind)
	}
	served := server{q.URL, q.Token}
	text := q.Text
	if len(text) == 0 {
		var err error
		if text, err = served.get("checkpoint"); err != nil {
			return err
		}
	}
	size, root, err := openCheckpoint(text, keys)
	if err != nil {
		return err
	}
	hashes := tlog.TileHashReader(tlog.Tree{N: size, Hash: root}, served)
	if q.Kind == "prove" {
		proof, err := tlog.ProveRecord(size, q.Seq, hashes)
		if err != nil {
			return err
		}
		return tlog.CheckRecord(proof, size, root, q.Seq, tlog.RecordHash(q.Record))
	}
	oldSize, oldRoot, err := openCheckpoint(q.Old, keys)
	if err != nil {
		return err
	}
	proof, err := tlog.ProveTree(size, oldSize, hashes)
	if err != nil {
		return err
	}
	return tlog.CheckTree(proof, size, root, oldSize, oldRoot)
}

// A server of tiles; implements tlog.TileReader.
type server struct{ url, token string }

// fetched holds tiles by address: the one of an address never changes.
var fetched = map[string][]byte{}

func (s server) get(path string) ([]byte, error) {
	request, err := http.NewRequest("GET", s.url+"/"+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		return nil, fmt.Errorf("%s: %s", path, answer.Status)
	}
	return io.ReadAll(io.LimitReader(answer.Body, 1<<20))
}

// Height is that of every tile by the specification, so paths do not name it, as Go's own do.
func (server) Height() int { return 8 }

func (s server) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var found [][]byte
	for _, tile := range tiles {
		path := "tile/" + strings.TrimPrefix(tile.Path(), "tile/8/")
		data, ok := fetched[s.url+path]
		if !ok {
			var err error
			if data, err = s.get(path); err != nil {
				return nil, err
			}
		}
		found = append(found, data)
	}
	return found, nil
}

// SaveTiles is told which tiles have been checked against the signed root.
func (s server) SaveTiles(tiles []tlog.Tile, data [][]byte) {
	for i, tile := range tiles {
		fetched[s.url+"tile/"+strings.TrimPrefix(tile.Path(), "tile/8/")] = data[i]
	}
}

const header = "c2sp.org/tlog-proof@v1\n"

// readProof takes "<word>N", hashes, a blank line and a checkpoint apart, in their one spelling.
func readProof(text, word string, keys []note.Verifier) (n int64, hashes []tlog.Hash, size int64, root tlog.Hash, err error) {
	i := strings.Index(text, "\n\n")
	if i < 0 {
		return 0, nil, 0, root, errors.New("no blank line in front of the checkpoint")
	}
	lines := strings.Split(text[:i], "\n")
	if !strings.HasPrefix(lines[0], word) {
		return 0, nil, 0, root, fmt.Errorf("no line %q", word)
	}
	if n, err = decimal(lines[0][len(word):]); err != nil {
		return 0, nil, 0, root, err
	}
	for _, line := range lines[1:] {
		hash, err := parseHash(line)
		if err != nil {
			return 0, nil, 0, root, err
		}
		hashes = append(hashes, hash)
	}
	size, root, err = openCheckpoint([]byte(text[i+2:]), keys)
	return n, hashes, size, root, err
}

// openCheckpoint opens a note that a given key signed, none of them falsely, and reads origin, size and root.
func openCheckpoint(msg []byte, keys []note.Verifier) (int64, tlog.Hash, error) {
	opened, err := note.Open(msg, note.VerifierList(keys...))
	if err != nil {
		return 0, tlog.Hash{}, err
	}
	if err := checkLines(strings.TrimPrefix(string(msg), opened.Text+"\n")); err != nil {
		return 0, tlog.Hash{}, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return 0, tlog.Hash{}, errors.New("a checkpoint has three lines")
	}
	if lines[0] != keys[0].Name() {
		return 0, tlog.Hash{}, fmt.Errorf("a checkpoint of %s", lines[0])
	}
	size, err := decimal(lines[1])
	if err != nil {
		return 0, tlog.Hash{}, err
	}
	root, err := parseHash(lines[2])
	return size, root, err
}

// checkLines checks what note.Open forgives: it drops a second line of a key unread, and stray bits in base64.
func checkLines(signatures string) error {
	seen := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSuffix(signatures, "\n"), "\n") {
		name, encoded, _ := strings.Cut(strings.TrimPrefix(line, "— "), " ")
		data, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if err != nil || len(data) < 5 || line != "— "+name+" "+base64.StdEncoding.EncodeToString(data) {
			return fmt.Errorf("another spelling of a signature line: %q", line)
		}
		key := name + "+" + string(data[:4])
		if seen[key] {
			return errors.New("signed twice by the same key")
		}
		seen[key] = true
	}
	return nil
}

func decimal(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, err
	}
	if n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("not a plain number: %q", text)
	}
	return n, nil
}

func parseHash(text string) (tlog.Hash, error) {
	hash, err := tlog.ParseHash(text)
	if err == nil && hash.String() != text {
		err = fmt.Errorf("another spelling of a hash: %q", text)
	}
	return hash, err
}
