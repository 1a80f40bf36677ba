/** Ranks documents with a reranking model. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { at, listOf } from '../decide/untrusted.ts';
import { linesOf } from '../decide/vectors.ts';
import { EXAMPLES, P } from '../texts-playground.ts';
import { RunButton } from './run-button.tsx';
import { SameRequest } from './same-request.tsx';
import { SlotBar, useSlotChoice } from './slot-choice.tsx';
import { useRequest } from './use-request.ts';

interface Ranked {
  readonly text: string;
  readonly score: number;
}

export function Rerank(): JSX.Element {
  const { client } = useApp();
  const choice = useSlotChoice('rerank');
  const request = useRequest();
  const [query, setQuery] = useState<string>(EXAMPLES.query);
  const [text, setText] = useState<string>(EXAMPLES.documents);
  const [ranked, setRanked] = useState<readonly Ranked[]>();
  const documents = linesOf(text);
  const body = { model: choice.slot, query, documents };
  const run = (event: Event): void => {
    event.preventDefault();
    request.start(async (signal) => {
      const answer = await client.ask<unknown>('/v1/rerank', { method: 'POST', body, signal });
      const results = listOf(at(answer, 'results')).map((result) => ({
        text: documents[Number(at(result, 'index'))] ?? '',
        score: Number(at(result, 'relevance_score')),
      }));
      setRanked(results.toSorted((one, other) => other.score - one.score));
    });
  };
  return (
    <>
      <SlotBar choice={choice} />
      <form class="ask" onSubmit={run}>
        <label>
          {P.query}
          <input value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
        </label>
        <label>
          {P.documents}
          <textarea rows={5} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <RunButton
          request={request}
          label={P.rank}
          slot={choice.slot}
          canRun={choice.slot !== '' && query.trim() !== '' && documents.length > 0}
        />
      </form>
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
      <SameRequest kind="rerank" body={body} />
    </>
  );
}
