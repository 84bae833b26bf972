package cosi

import (
	"fmt"
	"os"
)

// peerName is what the refusal of a socket that this process serves says.
func peerName() string { return fmt.Sprintf("process %d (", os.Getpid()) }
