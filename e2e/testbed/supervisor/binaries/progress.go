package binaries

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// progress reads what `go build -v` prints: a line for each package that it starts to compile, a
// line for each module that it downloads, and whatever it complains of.
type progress struct {
	begun time.Time

	mu         sync.Mutex
	total      int    // packages, those in the build cache counted; 0 while it is not known
	rest       []byte // of a line that is not complete
	compiled   int
	downloaded int
	latest     string
	other      []string
}

// progressPeriod is how often a long build says how far it is.
const progressPeriod = 15 * time.Second

func newProgress() *progress {
	return &progress{begun: time.Now()}
}

// report says how far the build is, now and then, until it is finished.
func (p *progress) report(say io.Writer, finished <-chan struct{}) {
	ticker := time.NewTicker(progressPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			fmt.Fprintln(say, p.String())
		case <-finished:
			return
		}
	}
}

// expect says how many packages there are at most to compile.
func (p *progress) expect(total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = total
}

// Write takes the output of the Go tool.
func (p *progress) Write(output []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, output...)
	for {
		line, rest, complete := bytes.Cut(p.rest, []byte("\n"))
		if !complete {
			return len(output), nil
		}
		p.rest = rest
		p.line(string(line))
	}
}

func (p *progress) line(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.downloaded++
		p.latest = strings.TrimPrefix(line, "go: ")
	case line != "" && !strings.ContainsAny(line, " :\t"):
		p.compiled++
		p.latest = line
	default:
		p.other = append(p.other, line)
	}
}

// String is a line that says how far the build is.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := fmt.Sprintf("  %4.0fs  modules downloaded: %d, packages compiled: %d", time.Since(p.begun).Seconds(), p.downloaded, p.compiled)
	if p.total > 0 {
		text += fmt.Sprintf(" of at most %d", p.total)
	}
	if p.latest != "" {
		text += fmt.Sprintf(" (%s)", p.latest)
	}
	return text
}

// complaints are the lines that were not progress.
func (p *progress) complaints() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.other, "\n")
}
