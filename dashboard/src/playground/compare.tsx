/** The same question to two to four slots, side by side, and a vote. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { chatBody, EMPTY_ANSWER, type ChatMessage } from '../decide/chat.ts';
import { addVote, readScores, type Score } from '../decide/votes.ts';
import { Button } from '../parts/button.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { TextAreaField } from '../parts/fields.tsx';
import { NO_SLOT, P } from '../texts-playground.ts';
import { ChatSettingsPanel, useChatSettings } from './chat-settings.tsx';
import { Message } from './message.tsx';
import { RunForm } from './run-form.tsx';
import { useSlotChoice } from './slot-choice.tsx';
import { readAnswer } from './use-conversation.ts';

const FEWEST = 2;
const MOST = 4;
const KEY = 'svc.votes';

interface Contestant {
  readonly slot: string;
  readonly model: string;
  readonly answer: ChatMessage;
  readonly isOpen: boolean;
}

export function Compare(): JSX.Element {
  const { client, store } = useApp();
  const { slots, ranked } = useSlotChoice('chat');
  const [picked, setPicked] = useState<ReadonlySet<string>>();
  const [prompt, setPrompt] = useState('');
  const [asked, setAsked] = useState<readonly Contestant[]>([]);
  const [round, setRound] = useState(0);
  const [scores, setScores] = useScores();
  const settings = useChatSettings();
  const chosen = slots.filter((slot) => picked?.has(slot) ?? ranked.slice(0, FEWEST).includes(slot));
  const run = async (stop: AbortSignal): Promise<void> => {
    const question = [{ ...EMPTY_ANSWER, role: 'user', content: prompt }] as const;
    const begin = chosen.map((slot): Contestant => {
      const model = store.of(slot)?.slot.peek().status.model ?? slot;
      return { slot, model, answer: EMPTY_ANSWER, isOpen: true };
    });
    setAsked(begin);
    setRound((last) => last + 1);
    const change = (slot: string, change: Partial<Contestant>): void =>
      setAsked((all) => all.map((each) => (each.slot === slot ? { ...each, ...change } : each)));
    const ask = async (slot: string): Promise<void> => {
      const body = { ...chatBody(slot, question, [], settings.current), stream: true, stream_options: { include_usage: true } };
      const answer = await readAnswer(client, body, { stop, onAnswer: (read) => change(slot, { answer: read }) });
      change(slot, { answer, isOpen: false });
    };
    await Promise.all(chosen.map(ask));
  };
  if (slots.length < FEWEST) return <p class="panel empty">{slots.length === 0 ? NO_SLOT.chat : P.oneChatSlot}</p>;
  return (
    <>
      <fieldset class="choices">
        <legend>{P.compared(FEWEST, MOST)}</legend>
        {slots.map((slot) => (
          <label key={slot} class="inline">
            <input
              type="checkbox"
              checked={chosen.includes(slot)}
              disabled={!chosen.includes(slot) && chosen.length >= MOST}
              onChange={({ currentTarget: { checked } }) =>
                setPicked(new Set(checked ? [...chosen, slot] : chosen.filter((other) => other !== slot)))
              }
            />
            {slot} <code>{store.of(slot)?.slot.value.status.model}</code>
          </label>
        ))}
      </fieldset>
      <RunForm slot={chosen[0] ?? ''} label={P.ask} isComplete={prompt.trim() !== '' && chosen.length >= FEWEST} onRun={run}>
        <TextAreaField label={P.message} rows={3} value={prompt} onValue={setPrompt} />
      </RunForm>
      <ChatSettingsPanel state={settings} />
      <Contest key={round} asked={asked} scores={scores} onScores={setScores} />
      {scores.length > 0 && <Scores scores={scores} onClear={() => setScores([])} />}
    </>
  );
}

/** The votes of this browser. */
function useScores(): readonly [readonly Score[], (scores: readonly Score[]) => void] {
  const [scores, setScores] = useState(() => readScores(localStorage.getItem(KEY) ?? ''));
  const keep = (next: readonly Score[]): void => {
    setScores(next);
    try {
      localStorage.setItem(KEY, JSON.stringify(next));
    } catch {
      // A full storage: the votes last until the reload.
    }
  };
  return [scores, keep];
}

interface ContestProps {
  readonly asked: readonly Contestant[];
  readonly scores: readonly Score[];
  readonly onScores: (scores: readonly Score[]) => void;
}

/** The answers to one question, which are judged once. */
function Contest({ asked, scores, onScores }: ContestProps): JSX.Element {
  const [better, setBetter] = useState<string>();
  const isDone = asked.length >= FEWEST && asked.every(({ isOpen }) => !isOpen);
  const judge = ({ slot, model }: Contestant): void => {
    const compared = asked.map((each) => each.model);
    onScores(addVote(scores, compared, model));
    setBetter(slot);
  };
  return (
    <div class="side-by-side" aria-live="polite">
      {asked.map((each) => (
        <section key={each.slot} aria-label={each.slot}>
          <p>
            <code>{each.model}</code>
          </p>
          <Message message={each.answer} isOpen={each.isOpen} slot={each.slot} />
          {isDone && better === undefined && <Button label={P.better} onClick={() => judge(each)} />}
          {better === each.slot && <p role="status">{P.judgedBetter}</p>}
        </section>
      ))}
    </div>
  );
}

function Scores({ scores, onClear }: { readonly scores: readonly Score[]; readonly onClear: () => void }): JSX.Element {
  return (
    <section class="panel">
      <h2>{P.votes}</h2>
      <DataTable label={P.votes} titles={[P.model, P.wins, P.comparisons]} numbers>
        {scores.map(({ model, wins, judged }) => (
          <tr key={model}>
            <th scope="row">{model}</th>
            <td>{wins}</td>
            <td>{judged}</td>
          </tr>
        ))}
      </DataTable>
      <Button label={P.clearVotes} look="quiet" onClick={onClear} />
    </section>
  );
}
