package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory returns how many bytes of memory the process has, what it shares counted in part, so that
// the memory of several processes adds up (proc(5): Pss of smaps_rollup).
func (i Identity) Memory() (int64, error) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(i.PID) + "/smaps_rollup")
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", i.PID, err)
	}
	return parsePss(content)
}

func parsePss(content []byte) (int64, error) {
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		value, found := strings.CutPrefix(lines.Text(), "Pss:")
		if !found {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("smaps_rollup has an unknown size: %w", err)
		}
		return kilobytes << 10, nil
	}
	return 0, fmt.Errorf("smaps_rollup has no line with Pss: %q", content)
}
