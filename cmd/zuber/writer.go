package main

import (
	"io"
	"sync"
)

// syncWriter lets several goroutines write to one stream, a call at a time.
// Writers with the same lock may stand for the same stream.
type syncWriter struct {
	lock *sync.Mutex
	w    io.Writer
}

func (s *syncWriter) Write(p []byte) (int, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.w.Write(p)
}
