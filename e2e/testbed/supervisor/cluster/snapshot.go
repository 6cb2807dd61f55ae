package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Snapshot saves what etcd holds to a file, as `etcdctl snapshot save` does.
func (p *Plan) Snapshot(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		url("http", p.Ports.EtcdClients)+"/v3/maintenance/snapshot", strings.NewReader("{}"))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking etcd of %s for a snapshot: %w", p.Name(), err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking etcd of %s for a snapshot: it answers %s", p.Name(), response.Status)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("saving a snapshot of %s: %w", p.Name(), err)
	}
	err = writePieces(file, response.Body)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("saving a snapshot of %s: %w", p.Name(), err)
	}
	return nil
}

// writePieces writes the pieces of a snapshot, which etcd's JSON gateway streams one after the other.
func writePieces(to io.Writer, stream io.Reader) error {
	pieces := json.NewDecoder(stream)
	for {
		var piece struct {
			Result struct{ Blob []byte }
			Error  *struct{ Message string }
		}
		err := pieces.Decode(&piece)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a piece: %w", err)
		}
		if piece.Error != nil {
			return errors.New(piece.Error.Message)
		}
		if _, err := to.Write(piece.Result.Blob); err != nil {
			return err
		}
	}
}

// Restore replaces what etcd holds by a snapshot; etcd must not run. Where bump is not 0, etcd goes on
// with revisions that are higher by as much, and forgets all before.
func (p *Plan) Restore(ctx context.Context, path string, bump uint64) error {
	if err := os.RemoveAll(p.file("etcd")); err != nil {
		return fmt.Errorf("clearing etcd of %s: %w", p.Name(), err)
	}
	args := []string{"snapshot", "restore", path, "--data-dir=" + p.file("etcd")}
	for _, flag := range p.etcd().Args {
		for _, shared := range []string{"--name=", "--initial-cluster=", "--initial-advertise-peer-urls="} {
			if strings.HasPrefix(flag, shared) {
				args = append(args, flag)
			}
		}
	}
	if bump > 0 {
		args = append(args, "--bump-revision="+strconv.FormatUint(bump, 10), "--mark-compacted")
	}
	utility := exec.CommandContext(ctx, p.Programs.EtcdUtility, args...)
	var output bytes.Buffer
	utility.Stdout, utility.Stderr = &output, &output
	if err := utility.Run(); err != nil {
		return fmt.Errorf("restoring etcd of %s: %w: %s", p.Name(), err, output.String())
	}
	return nil
}
