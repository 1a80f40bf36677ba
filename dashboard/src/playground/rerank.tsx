/** Ranks documents with a reranking model. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { at, listOf } from '../decide/untrusted.ts';
import { linesOf } from '../decide/vectors.ts';
import { InputField, TextAreaField } from '../parts/fields.tsx';
import { EXAMPLES, P } from '../texts-playground.ts';
import { RunForm } from './run-form.tsx';
import { CodeSamples } from './code-samples.tsx';
import { SlotBar, useSlotChoice } from './slot-choice.tsx';

interface Ranked {
  readonly text: string;
  readonly score: number;
}

export function Rerank(): JSX.Element {
  const { client } = useApp();
  const choice = useSlotChoice('rerank');
  const [query, setQuery] = useState<string>(EXAMPLES.query);
  const [text, setText] = useState<string>(EXAMPLES.documents);
  const [ranked, setRanked] = useState<readonly Ranked[]>();
  const documents = linesOf(text);
  const body = { model: choice.slot, query, documents };
  const run = async (signal: AbortSignal): Promise<void> => {
    const answer = await client.fetchJson<unknown>('/v1/rerank', { method: 'POST', body, signal });
    const results = listOf(at(answer, 'results')).map((result) => ({
      text: documents[Number(at(result, 'index'))] ?? '',
      score: Number(at(result, 'relevance_score')),
    }));
    setRanked(results.toSorted((one, other) => other.score - one.score));
  };
  return (
    <>
      <SlotBar choice={choice} />
      <RunForm slot={choice.slot} label={P.rank} isComplete={query.trim() !== '' && documents.length > 0} onRun={run}>
        <InputField label={P.query} value={query} onValue={setQuery} />
        <TextAreaField label={P.documents} rows={5} value={text} onValue={setText} />
      </RunForm>
      {ranked !== undefined && (
        <section class="panel result">
          <h2>{P.ranking}</h2>
          <ol class="ranking">
            {ranked.map(({ text: shown, score }, index) => (
              <li key={index}>
                <span>{shown}</span> <strong>{score.toFixed(3)}</strong>
              </li>
            ))}
          </ol>
        </section>
      )}
      <CodeSamples kind="rerank" body={body} />
    </>
  );
}
