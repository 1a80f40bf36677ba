/** The pool of connections: reuses idle ones for a short time, and closes those to endpoints that left the board. */
import type { Endpoint } from '../../providers/provider.ts';
import type { RoutedBoard, RoutedView } from '../../reconciler/board.ts';
import type { UpstreamEvents } from '../request-events.ts';
import { createLinks } from '../../remote/remote-link.ts';
import { createReadCoalescer } from '../batch-streams.ts';
import { UpstreamConnection, type PoolEvents } from './upstream-connection.ts';

export type Upstreams = ReturnType<typeof createUpstreams>;

/** An idle connection occupies a thread of cpp-httplib, which closes it after 5 s. */
const IDLE_MS = 2000;
/** A connection is closed this long before the upstream's own `Keep-Alive` time is over. */
const IDLE_MARGIN_MS = 1000;
const SWEEP_MS = 500;
/** Idle connections per endpoint, which bounds file descriptors on both sides. */
const IDLE_LIMIT = 256;

type Pool = Readonly<{ idle: UpstreamConnection[]; events: PoolEvents }>;

export function createUpstreams({ board }: { readonly board: RoutedBoard }) {
  const pools = new Map<string, Pool>();
  const connections = new Set<UpstreamConnection>();
  const links = createLinks();
  const deps = { links, coalesce: createReadCoalescer() };
  let tick = performance.now();
  const sweeper = setInterval(() => {
    tick = performance.now();
    for (const pool of pools.values()) closeStale(pool, tick);
  }, SWEEP_MS);
  sweeper.unref();

  function poolOf(key: string): Pool {
    const known = pools.get(key);
    if (known !== undefined) return known;
    const idle: UpstreamConnection[] = [];
    const events: PoolEvents = {
      onIdle(connection) {
        if (pools.get(key)?.idle !== idle || idle.length >= IDLE_LIMIT || idleMsOf(connection) <= 0) return connection.destroy();
        connection.idleSince = tick;
        idle.push(connection);
      },
      onGone(connection) {
        connections.delete(connection);
        const at = idle.indexOf(connection);
        if (at !== -1) idle.splice(at, 1);
      },
    };
    const pool: Pool = { idle, events };
    pools.set(key, pool);
    return pool;
  }

  const unsubscribe = board.subscribe((view) => {
    if (pools.size === 0) return;
    const wanted = endpointKeys(view);
    for (const [key, pool] of pools) {
      if (wanted.has(key)) continue;
      pools.delete(key);
      for (const connection of pool.idle.splice(0)) connection.destroy();
    }
  });

  return {
    /** `fresh`: opens a new connection instead of reusing an idle one. */
    connect(endpoint: Endpoint, events: UpstreamEvents, fresh: boolean) {
      const pool = poolOf(keyOf(endpoint));
      let connection = fresh ? undefined : pool.idle.pop();
      // A connection leaves the pool a moment after it has been closed.
      while (connection !== undefined && !connection.usable) connection = pool.idle.pop();
      if (connection === undefined) {
        connection = new UpstreamConnection(endpoint, pool.events, deps);
        connections.add(connection);
      }
      connection.begin(events);
      return connection;
    },
    linesFor: links.linesFor,
    open: () => connections.size,
    close() {
      unsubscribe();
      clearInterval(sweeper);
      pools.clear();
      for (const connection of connections) connection.destroy();
    },
  };
}

function closeStale({ idle }: Pool, now: number): void {
  // Connections are reused last in, first out, so the stale ones are at the front.
  const fresh = idle.findIndex((connection) => now - connection.idleSince < idleMsOf(connection));
  for (const connection of idle.splice(0, fresh === -1 ? idle.length : fresh)) connection.destroy();
}

function idleMsOf(connection: UpstreamConnection): number {
  const { keepAliveSeconds } = connection;
  return keepAliveSeconds === undefined ? IDLE_MS : Math.min(IDLE_MS, keepAliveSeconds * 1000 - IDLE_MARGIN_MS);
}

function endpointKeys(view: RoutedView): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const slot of view.slots.values()) for (const target of slot.targets) keys.add(keyOf(target.endpoint));
  return keys;
}

const keyOf = ({ host, port, link }: Endpoint): string => (link === undefined ? `${host}:${port}` : link.key);
