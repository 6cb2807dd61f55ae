package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// tailBytes bounds how much of a log is read for its tail.
const tailBytes = 16 << 10

// Tail returns the last lines of a log.
func Tail(path string, lines int) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("opening the log: %w", err)
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return "", fmt.Errorf("reading the log: %w", err)
	}
	content := make([]byte, min(size, tailBytes))
	if _, err := file.ReadAt(content, size-int64(len(content))); err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the log: %w", err)
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n"), nil
}
