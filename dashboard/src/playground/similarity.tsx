/** Compares texts with an embedding model. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { at, listOf } from '../decide/untrusted.ts';
import { cosineSimilarity, linesOf } from '../decide/vectors.ts';
import { TextAreaField } from '../parts/fields.tsx';
import { EXAMPLES, P } from '../texts-playground.ts';
import { RunForm } from './run-form.tsx';
import { CodeSamples } from './code-samples.tsx';
import { SlotBar, useSlotChoice } from './slot-choice.tsx';

interface Compared {
  readonly texts: readonly string[];
  readonly vectors: readonly (readonly number[])[];
}

export function Similarity(): JSX.Element {
  const { client } = useApp();
  const choice = useSlotChoice('embedding');
  const [text, setText] = useState<string>(EXAMPLES.texts);
  const [compared, setCompared] = useState<Compared>();
  const texts = linesOf(text);
  const body = { model: choice.slot, input: texts };
  const run = async (signal: AbortSignal): Promise<void> => {
    const answer = await client.fetchJson<unknown>('/v1/embeddings', { method: 'POST', body, signal });
    setCompared({ texts, vectors: listOf(at(answer, 'data')).map((entry) => listOf(at(entry, 'embedding')).map(Number)) });
  };
  return (
    <>
      <SlotBar choice={choice} />
      <RunForm slot={choice.slot} label={P.compare} isComplete={texts.length > 1} onRun={run}>
        <TextAreaField label={P.texts} rows={5} value={text} onValue={setText} />
        {texts.length < 2 && <p class="why">{P.twoTexts}</p>}
      </RunForm>
      {compared !== undefined && <Matrix {...compared} />}
      <CodeSamples kind="embedding" body={body} />
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
                  const value = cosineSimilarity(vectors[row] ?? [], vector);
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
