/** Loads something for a part of the page, again when one of the keys changes. */
import { useEffect, useState } from 'preact/hooks';
import { messageOf } from '../io/client.ts';

export type Loaded<Value> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'done'; readonly value: Value };

/** The last value stays until the next one is there, so that nothing flickers. */
export function useLoaded<Value>(load: (signal: AbortSignal) => Promise<Value>, keys: readonly unknown[]): Loaded<Value> {
  const [loaded, setLoaded] = useState<Loaded<Value>>({ kind: 'loading' });
  useEffect(() => {
    const leave = new AbortController();
    load(leave.signal).then(
      (value) => {
        if (!leave.signal.aborted) setLoaded({ kind: 'done', value });
      },
      (error: unknown) => {
        if (!leave.signal.aborted) setLoaded({ kind: 'failed', message: messageOf(error) });
      },
    );
    return () => leave.abort();
  }, keys);
  return loaded;
}
