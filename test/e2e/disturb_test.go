package e2e

import "github.com/zuber-storage/zuber/test/e2e/cluster"

// restart stops a program in good order and starts it again. The API server,
// which would wait a minute for its clients to leave, is killed.
func (s *story) restart(p *cluster.Process) {
	s.Helper()
	if p == s.APIServer {
		s.crash(p)
		return
	}
	if err := p.Stop(); err != nil {
		s.Fatal(err)
	}
	s.start(p)
}

// crash kills a program as kill -9 does and starts it again.
func (s *story) crash(p *cluster.Process) {
	s.Helper()
	p.Kill()
	s.start(p)
}

func (s *story) start(p *cluster.Process) {
	s.Helper()
	if err := p.Start(s.Context()); err != nil {
		s.Fatal(err)
	}
}
