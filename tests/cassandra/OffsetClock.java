/** A node's wall clock that is wrong by -Doffset.ms: start it with -Dcassandra.clock=OffsetClock. */
public class OffsetClock implements org.apache.cassandra.utils.Clock {
    private static final long OFFSET = Long.getLong("offset.ms", 0);

    public long nanoTime() {
        return System.nanoTime();
    }

    public long currentTimeMillis() {
        return System.currentTimeMillis() + OFFSET;
    }
}
