/** Loads a part of the page on demand, to keep the first load small. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { whenIdle } from '../io/next-frame.ts';
import { T } from '../texts.ts';

interface LazyProps {
  readonly load: () => Promise<() => JSX.Element | null>;
  /** Loaded in an idle moment, without a placeholder. */
  readonly isQuiet?: boolean;
}

/** Requests fail briefly while the network changes or the service restarts. */
const AGAIN_MS = 1500;

async function loadTwice<Part>(load: () => Promise<Part>): Promise<Part> {
  try {
    return await load();
  } catch {
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    return load();
  }
}

/** Needs a `key` where `load` changes. */
export function Lazy({ load, isQuiet = false }: LazyProps): JSX.Element | null {
  const [Part, setPart] = useState<() => JSX.Element | null>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    const begin = (): void =>
      void loadTwice(load).then(
        (part) => setPart(() => part),
        () => setFailed(true),
      );
    if (isQuiet) whenIdle(begin);
    else begin();
  }, []);
  if (failed)
    return (
      <div class="panel" role="alert">
        <p>{T.partFailed}</p>
        <button type="button" onClick={() => location.reload()}>
          {T.reloadPage}
        </button>
      </div>
    );
  if (Part !== undefined) return <Part />;
  return isQuiet ? null : <p role="status">{T.loading}</p>;
}
