package s3

import "context"

// Size lists the bucket and returns what it holds: the bytes of its objects and their
// old versions, and their number. Before every page it calls rest, whose error ends
// it. The error is of type *Error, or is that of rest, or wraps ctx.Err().
func (c *Client) Size(ctx context.Context, bucket string, rest func(context.Context) error) (bytes, objects int64, err error) {
	if err := rest(ctx); err != nil {
		return 0, 0, err
	}
	n := 0
	for o, err := range c.versions(ctx, bucket, batchSize) {
		if err != nil {
			return 0, 0, err
		}
		if n++; n%batchSize == 0 {
			if err := rest(ctx); err != nil {
				return 0, 0, err
			}
		}
		if !o.IsDeleteMarker {
			bytes += o.Size
			objects++
		}
	}
	return bytes, objects, nil
}
