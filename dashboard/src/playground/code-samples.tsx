/** Code samples for the request of a playground form. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import type { Table } from '../decide/patch.ts';
import { SNIPPETS, snippetOf, type CallKind, type SnippetName } from '../decide/snippets.ts';
import { P } from '../texts-playground.ts';

interface CodeSamplesProps {
  readonly kind: CallKind;
  readonly body: Table;
}

export function CodeSamples({ kind, body }: CodeSamplesProps): JSX.Element {
  const { store } = useApp();
  const [name, setName] = useState<SnippetName>('curl');
  const needsToken = store.status.value?.auth_enabled === true;
  return (
    <details class="snippets">
      <summary>{P.viewCode}</summary>
      <div class="buttons" role="group" aria-label={P.viewCode}>
        {SNIPPETS.map((each) => (
          <button key={each} type="button" aria-pressed={each === name} onClick={() => setName(each)}>
            {each}
          </button>
        ))}
      </div>
      <pre tabIndex={0}>{snippetOf(name, { origin: location.origin, kind, body, needsToken })}</pre>
    </details>
  );
}
