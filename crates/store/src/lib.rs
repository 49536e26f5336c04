//! What was written: a revisioned, durable key-value log. Knows nothing of Kubernetes objects.
