package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// fingerprint names a state of sources: go.mod, go.sum and the Go files below the directories,
// tests aside, together with the flags that they are built with.
func fingerprint(module string, directories, flags []string) (string, error) {
	hash := sha256.New()
	for _, flag := range flags {
		fmt.Fprintf(hash, "%q\n", flag)
	}
	paths := []string{"go.mod", "go.sum"}
	for _, directory := range directories {
		found, err := goFiles(module, directory)
		if err != nil {
			return "", fmt.Errorf("listing the sources in %s: %w", directory, err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		content, err := os.ReadFile(filepath.Join(module, path))
		if err != nil {
			return "", fmt.Errorf("reading the sources: %w", err)
		}
		fmt.Fprintf(hash, "%q %d\n%s", path, len(content), content)
	}
	const length = 8 // bytes; it tells apart a handful of builds, not all builds there ever were
	return hex.EncodeToString(hash.Sum(nil)[:length]), nil
}

// goFiles lists the files relative to the module, sorted.
func goFiles(module, directory string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(filepath.Join(module, directory), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		relative, err := filepath.Rel(module, path)
		files = append(files, relative)
		return err
	})
	return files, err
}
