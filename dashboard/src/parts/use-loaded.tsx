import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { messageOf } from '../io/client.ts';
import { T } from '../texts.ts';

export type Loaded<Value> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'done'; readonly value: Value };

/** Loads a value, and reloads it when a key changes. Keeps the last value until the next one arrives. */
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

/** Shows that the value is loading or has failed to load. */
export function LoadStatus({
  loaded,
  loading = T.loading,
}: {
  readonly loaded: Loaded<unknown>;
  readonly loading?: string;
}): JSX.Element | null {
  if (loaded.kind === 'loading') return <p role="status">{loading}</p>;
  return loaded.kind === 'failed' ? <p role="alert">{loaded.message}</p> : null;
}
