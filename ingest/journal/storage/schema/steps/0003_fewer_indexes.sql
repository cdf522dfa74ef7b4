-- Most deliveries are sending when they are stored, and sent a moment later. So they are in one index meanwhile, and not in two.
DROP INDEX deliveries_due;
DROP INDEX deliveries_open;
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE state = 'pending';
CREATE INDEX deliveries_open ON deliveries (state, thread) WHERE state IN ('pending', 'sending');
