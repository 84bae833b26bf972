package companion

import (
	"context"

	"k8s.io/klog/v2"
)

// mostVerbose is the highest log level of what the companion does. From 7 on,
// client-go logs headers and then bodies, and with them Secrets.
const mostVerbose = 6

// withoutBodies returns a context whose logger takes nothing above mostVerbose,
// whatever the log shows of the driver.
func withoutBodies(ctx context.Context) context.Context {
	logger := klog.FromContext(ctx)
	if sink := logger.GetSink(); sink != nil {
		logger = logger.WithSink(limitedSink{sink})
	}
	return klog.NewContext(ctx, logger)
}

// limitedSink is a LogSink with nothing above mostVerbose.
type limitedSink struct{ klog.LogSink }

func (s limitedSink) Enabled(level int) bool {
	return level <= mostVerbose && s.LogSink.Enabled(level)
}

func (s limitedSink) WithValues(pairs ...any) klog.LogSink {
	return limitedSink{s.LogSink.WithValues(pairs...)}
}

func (s limitedSink) WithName(name string) klog.LogSink {
	return limitedSink{s.LogSink.WithName(name)}
}
