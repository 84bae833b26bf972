package main

import (
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// newLogger returns a contextual logger that writes to w in the chosen format.
func newLogger(w io.Writer, s logSettings) klog.Logger {
	if s.Format != formatJSON {
		return textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(s.Verbosity), textlogger.Output(w)))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(w, &slog.HandlerOptions{
		// logr hands verbosity n to slog as level -n.
		Level: slog.Level(-s.Verbosity),
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration {
				a.Value = slog.StringValue(a.Value.Duration().String())
			}
			return a
		},
	}))
}
