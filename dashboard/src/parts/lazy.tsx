/** A part of the page that is loaded when it is needed, so that the first page is there sooner. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { T } from '../texts.ts';

interface LazyProps {
  readonly load: () => Promise<() => JSX.Element | null>;
}

/** Give it a `key` where `load` changes. */
export function Lazy({ load }: LazyProps): JSX.Element | null {
  const [Part, setPart] = useState<() => JSX.Element | null>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    load().then(
      (part) => setPart(() => part),
      () => setFailed(true),
    );
  }, []);
  if (failed)
    return (
      <div class="panel" role="alert">
        <p>{T.partGone}</p>
        <button type="button" onClick={() => location.reload()}>
          {T.reloadPage}
        </button>
      </div>
    );
  return Part === undefined ? <p role="status">{T.loading}</p> : <Part />;
}
