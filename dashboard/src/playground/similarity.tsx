/** Compares texts with an embedding model. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { at, listOf } from '../decide/untrusted.ts';
import { linesOf, similarity } from '../decide/vectors.ts';
import { EXAMPLES, P } from '../texts-playground.ts';
import { RunButton } from './run-button.tsx';
import { SameRequest } from './same-request.tsx';
import { SlotBar, useSlotChoice } from './slot-choice.tsx';
import { useRequest } from './use-request.ts';

interface Compared {
  readonly texts: readonly string[];
  readonly vectors: readonly (readonly number[])[];
}

export function Similarity(): JSX.Element {
  const { client } = useApp();
  const choice = useSlotChoice('embedding');
  const request = useRequest();
  const [text, setText] = useState<string>(EXAMPLES.texts);
  const [compared, setCompared] = useState<Compared>();
  const texts = linesOf(text);
  const body = { model: choice.slot, input: texts };
  const run = (event: Event): void => {
    event.preventDefault();
    request.start(async (signal) => {
      const answer = await client.ask<unknown>('/v1/embeddings', { method: 'POST', body, signal });
      setCompared({ texts, vectors: listOf(at(answer, 'data')).map((entry) => listOf(at(entry, 'embedding')).map(Number)) });
    });
  };
  return (
    <>
      <SlotBar choice={choice} />
      <form class="ask" onSubmit={run}>
        <label>
          {P.texts}
          <textarea rows={5} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        {texts.length < 2 && <p class="why">{P.twoTexts}</p>}
        <RunButton request={request} label={P.compare} slot={choice.slot} canRun={choice.slot !== '' && texts.length > 1} />
      </form>
      {compared !== undefined && <Matrix {...compared} />}
      <SameRequest kind="embedding" body={body} />
    </>
  );
}

function Matrix({ texts, vectors }: Compared): JSX.Element {
  return (
    <section class="panel result">
      <h2>{P.similarities}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={P.similarities}>
        <table class="matrix">
          <thead>
            <tr>
              <td />
              {texts.map((text, index) => (
                <th key={index} scope="col" title={text}>
                  {index + 1}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {texts.map((text, row) => (
              <tr key={row}>
                <th scope="row">
                  {row + 1}. {text}
                </th>
                {vectors.map((vector, column) => {
                  const value = similarity(vectors[row] ?? [], vector);
                  return (
                    <td key={column} style={{ '--share': `${Math.round(Math.max(0, value) * 45)}%` }}>
                      {value.toFixed(2)}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="why">
        {vectors[0]?.length ?? 0} {P.dimensions}
      </p>
    </section>
  );
}
