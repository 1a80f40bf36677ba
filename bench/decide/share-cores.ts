/** Which cores the compared proxies get, and which the load generator and the upstreams. Pure. */

export interface Cores {
  /** One core, for one proxy at a time. */
  readonly proxy: string;
  /** All others, as a list for `taskset`. */
  readonly load: string;
}

/** `allowed`: the list of the kernel, such as `0-3,6`. Returns undefined if there is only one core, since then nothing can be kept apart. */
export function shareCores(allowed: string): Cores | undefined {
  const cores = allowed.split(',').flatMap((part) => {
    const [first = Number.NaN, last = first] = part.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
  const [proxy, ...load] = cores;
  return proxy === undefined || load.length === 0 ? undefined : { proxy: String(proxy), load: load.join(',') };
}
