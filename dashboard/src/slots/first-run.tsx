/** The checklist of a new installation, which ends with a test prompt. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp, useMay } from '../app-context.ts';
import { EMPTY_ANSWER, chatBody } from '../decide/chat.ts';
import { at, textOf } from '../decide/untrusted.ts';
import { hashOf } from '../decide/route.ts';
import { messageOf } from '../io/client.ts';
import { T } from '../texts.ts';
import type { InstallState } from '../types.ts';
import { useLoaded } from '../parts/use-loaded.tsx';
import { useSelector } from '../parts/use-selector.ts';

/** Polled, because steps are done by commands or on other pages. */
const EVERY_SECONDS = 3;

export function FirstRun(): JSX.Element | null {
  const { client, now } = useApp();
  const may = useMay();
  const [done, setDone] = useState(false);
  const round = useSelector(() => (done ? -1 : Math.floor(now.value / 1000 / EVERY_SECONDS)));
  const state = useLoaded(
    async (signal) => {
      const answer = done ? undefined : await client.fetchJson<InstallState>('/api/install/state', { signal });
      if (answer?.complete === true) setDone(true);
      return answer;
    },
    // Stops polling once the installation is complete.
    [done || round],
  );
  if (state.kind !== 'done' || state.value === undefined || state.value.complete) return null;
  const { steps } = state.value;
  return (
    <section class="panel first-run" aria-labelledby="first-run">
      <h2 id="first-run">{T.firstRun}</h2>
      <ol>
        {steps.map(({ id, done: isDone, hint }) => (
          <li key={id} class={isDone ? 'done' : 'open'}>
            <strong>{titleOf(id)}</strong> <span class="tag">{isDone ? T.stepDone : T.stepOpen}</span>
            {!isDone && <small>{hint}</small>}
            {!isDone && id === 'model' && <a href={hashOf({ page: 'models' })}>{T.browseModels}</a>}
          </li>
        ))}
        {may('v1') && <FirstAnswer canAsk={steps.every((step) => step.done)} onDone={() => setDone(true)} />}
      </ol>
    </section>
  );
}

function titleOf(id: string): string {
  return Object.entries(T.firstSteps).find(([name]) => name === id)?.[1] ?? id;
}

/** The installation is complete once the user has seen a response. */
function FirstAnswer({ canAsk, onDone }: { readonly canAsk: boolean; readonly onDone: () => void }): JSX.Element {
  const { client, store } = useApp();
  const [answer, setAnswer] = useState('');
  const [failure, setFailure] = useState('');
  const [asking, setAsking] = useState(false);
  const slot = useSelector(() =>
    (store.names.value ?? []).find((name) => {
      const status = store.of(name)?.slot.value.status;
      return status?.capabilities.includes('chat') === true && status.state !== 'offline';
    }),
  );
  const ask = async (): Promise<void> => {
    setAsking(true);
    setFailure('');
    try {
      const body = chatBody(slot ?? '', [{ ...EMPTY_ANSWER, role: 'user', content: T.firstQuestion }]);
      const sent = await client.fetchJson<unknown>('/v1/chat/completions', { method: 'POST', body: { ...body, max_tokens: 200 } });
      setAnswer(textOf(at(at(at(at(sent, 'choices'), 0), 'message'), 'content')) || T.emptyAnswer);
    } catch (error) {
      setFailure(messageOf(error));
    }
    setAsking(false);
  };
  const finish = async (): Promise<void> => {
    try {
      await client.fetchJson('/api/install/complete', { method: 'POST' });
      onDone();
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  return (
    <li class={answer === '' ? 'open' : 'done'}>
      <strong>{T.firstAnswer}</strong> <span class="tag">{answer === '' ? T.stepOpen : T.stepDone}</span>
      {answer !== '' && <blockquote>{answer}</blockquote>}
      {failure !== '' && <p role="alert">{failure}</p>}
      <div class="buttons">
        {answer === '' ? (
          <button type="button" class="main" disabled={!canAsk || slot === undefined || asking} onClick={() => void ask()}>
            {asking ? T.sending : T.sendTestPrompt}
          </button>
        ) : (
          <button type="button" class="main" onClick={() => void finish()}>
            {T.finishInstall}
          </button>
        )}
      </div>
    </li>
  );
}
