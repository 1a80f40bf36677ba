/** Edits a slot by form or as TOML, beside the plan of the edit. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { applyPatch, diffTables, listChanges, type ChangedKey, type Table } from '../decide/patch.ts';
import { lineOfKey } from '../decide/slot-document.ts';
import { hashOf } from '../decide/route.ts';
import { ApiError, messageOf, type Client } from '../io/client.ts';
import { N } from '../texts-new-slot.ts';
import { T } from '../texts.ts';
import type { Plan, Slot, SlotText } from '../types.ts';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { PlanView } from '../parts/plan-view.tsx';
import { watchOf } from './slot-actions.ts';
import { SlotForm } from './slot-form.tsx';
import { TomlField, type TextMark, type TomlTools } from './toml-field.tsx';
import { useLoaded, type Loaded } from '../parts/use-loaded.tsx';

const TYPING_MS = 350;

export function EditTab({ name }: { readonly name: string }): JSX.Element {
  const { client } = useApp();
  const [round, setRound] = useState<{ readonly count: number; readonly patch: Table }>({ count: 0, patch: {} });
  const loaded = useLoaded(
    async (signal) => {
      const [tools, slot] = await Promise.all([import('./toml-editor.ts'), client.fetchJson<Slot>(pathOf(name), { signal })]);
      // A text that cannot be parsed has no document: it is shown as it is.
      const written = slot.spec === null ? await client.fetchJson<SlotText>(`${pathOf(name)}/text`, { signal }) : undefined;
      return { tools: tools.TOML, slot, written: written?.text, round };
    },
    [name, round],
  );
  if (loaded.kind === 'loading' || (loaded.kind === 'done' && loaded.value.round !== round)) return <p role="status">{T.editorLoading}</p>;
  if (loaded.kind === 'failed') return <p role="alert">{loaded.message}</p>;
  const restart = (patch: Table): void => setRound({ count: round.count + 1, patch });
  return <Editing key={round.count} {...loaded.value} patch={round.patch} restart={restart} />;
}

interface EditingProps {
  readonly tools: TomlTools;
  readonly slot: Slot;
  /** The file; undefined unless it cannot be parsed. */
  readonly written: string | undefined;
  /** Edits of an earlier version of the slot, to reapply. */
  readonly patch: Table;
  /** Reloads the slot and applies the patch to it. */
  readonly restart: (patch: Table) => void;
}

type Planned = Extract<Outcome, { kind: 'planned' }>;
type Outcome =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'wrong'; readonly mark: TextMark; readonly key: string }
  | { readonly kind: 'planned'; readonly plan: Plan; readonly patch: Table; readonly document: Table };

function Editing({ tools, slot, written, patch, restart }: EditingProps): JSX.Element {
  const { client } = useApp();
  const base = slot.spec ?? {};
  const initial = useMemo(() => written ?? tools.write(applyPatch(base, patch)), [slot]);
  const [text, setText] = useState(initial);
  const [shown, setShown] = useState({ text: initial });
  const [settled, setSettled] = useState(initial);
  const [conflict, setConflict] = useState<Slot>();
  const [failure, setFailure] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const outcome = useLoaded((signal) => checkText({ client, tools, slot, text: settled }, signal), [settled]);
  const known = outcome.kind === 'done' ? outcome.value : undefined;
  const save = async ({ patch: changes, document: whole }: Planned): Promise<void> => {
    try {
      const edit =
        written === undefined
          ? ({ method: 'PATCH', body: { spec: changes } } as const)
          : ({ method: 'PUT', body: { spec: whole, text } } as const);
      await client.fetchJson(pathOf(slot.name), { ...edit, ifMatch: slot.resource_version });
      location.hash = hashOf(watchOf(slot.name));
    } catch (error) {
      if (error instanceof ApiError && error.code === 'slot.conflict') setConflict(await client.fetchJson<Slot>(pathOf(slot.name)));
      else setFailure(messageOf(error));
    }
  };
  const document = useMemo(() => readDocument(tools, text), [text]);
  const writeForm = (next: Table): void => {
    const toml = tools.write(next);
    setText(toml);
    setShown({ text: toml });
  };
  return (
    <div class="tab edit">
      <div class="side-by-side">
        <SlotForm document={document} onDocument={writeForm} wrongKey={known?.kind === 'wrong' ? known.key : ''} />
        <TomlField tools={tools} shown={shown} onText={setText} mark={known?.kind === 'wrong' ? known.mark : undefined} />
      </div>
      {conflict !== undefined && known?.kind === 'planned' && (
        <Conflict theirs={listChanges(base, conflict.spec ?? {})} onKeep={() => restart(known.patch)} onDrop={() => restart({})} />
      )}
      {failure !== '' && <p role="alert">{failure}</p>}
      <DeleteSlot name={slot.name} />
      <Decision
        outcome={outcome}
        base={base}
        isSettled={text === settled && conflict === undefined}
        save={(planned) => void save(planned)}
      />
    </div>
  );
}

function DeleteSlot({ name }: { readonly name: string }): JSX.Element {
  const { store } = useApp();
  const [asks, setAsks] = useState(false);
  const leave = (): void => {
    location.hash = hashOf({ page: 'slots' });
    void store.reload();
  };
  return (
    <div class="buttons">
      <button type="button" class="danger" onClick={() => setAsks(true)}>
        {N.delete}
      </button>
      {asks && (
        <ConfirmDialog
          title={N.deleteTitle(name)}
          text={N.deleteWhy}
          action={N.deleteAction}
          path={pathOf(name)}
          onClose={() => setAsks(false)}
          onDone={leave}
        />
      )}
    </div>
  );
}

interface DecisionProps {
  readonly outcome: Loaded<Outcome>;
  readonly base: Table;
  /** The outcome is that of the text, and nobody else has changed the slot. */
  readonly isSettled: boolean;
  readonly save: (planned: Planned) => void;
}

/** The plan and the button that applies it, always in view. */
function Decision({ outcome, base, isSettled, save }: DecisionProps): JSX.Element {
  const known = outcome.kind === 'done' ? outcome.value : undefined;
  const planned = known?.kind === 'planned' ? known : undefined;
  const fails = planned !== undefined && planned.plan.failing.length > 0;
  return (
    <footer>
      <div class="judgement" aria-live="polite" tabIndex={0}>
        {outcome.kind === 'failed' && <p role="alert">{outcome.message}</p>}
        {known !== undefined && <OutcomeView outcome={known} base={base} />}
      </div>
      {fails && <p class="why">{T.applyFails}</p>}
      <button type="button" class="main" disabled={planned === undefined || fails || !isSettled} onClick={() => planned && save(planned)}>
        {T.apply}
      </button>
    </footer>
  );
}

function OutcomeView({ outcome, base }: { readonly outcome: Outcome; readonly base: Table }): JSX.Element {
  if (outcome.kind === 'unchanged') return <p>{T.unchanged}</p>;
  if (outcome.kind === 'wrong') return <InvalidText mark={outcome.mark} />;
  return (
    <>
      <PlanView plan={outcome.plan} />
      <ChangeList title={T.yourChanges} changes={listChanges(base, applyPatch(base, outcome.patch))} />
    </>
  );
}

interface ConflictProps {
  readonly theirs: readonly ChangedKey[];
  readonly onKeep: () => void;
  readonly onDrop: () => void;
}

function Conflict({ theirs, onKeep, onDrop }: ConflictProps): JSX.Element {
  return (
    <section class="alarm" role="alert">
      <h3>{T.slotChanged}</h3>
      <ChangeList title={T.theirChanges} changes={theirs} />
      <div class="buttons">
        <button type="button" class="main" onClick={onKeep}>
          {T.reapplyMine}
        </button>
        <button type="button" onClick={onDrop}>
          {T.discardMine}
        </button>
      </div>
    </section>
  );
}

function InvalidText({ mark }: { readonly mark: TextMark }): JSX.Element {
  return (
    <div class="alarm">
      <h3>{T.invalid}</h3>
      <p>
        {T.line} {mark.line}: {mark.message}
      </p>
    </div>
  );
}

function ChangeList({ title, changes }: { readonly title: string; readonly changes: readonly ChangedKey[] }): JSX.Element {
  return (
    <section>
      <h3>{title}</h3>
      <ul class="changes">
        {changes.map(({ key, before, after }) => (
          <li key={key}>
            <code>{key}</code> {before !== undefined && <del>{before}</del>} {after !== undefined && <ins>{after}</ins>}
          </li>
        ))}
      </ul>
    </section>
  );
}

interface CheckInput {
  readonly client: Client;
  readonly tools: TomlTools;
  readonly slot: Slot;
  readonly text: string;
}

/** Plans the edit, or locates its error. */
async function checkText({ client, tools, slot, text }: CheckInput, signal: AbortSignal): Promise<Outcome> {
  const parsed = tools.read(text);
  if (!parsed.ok) return { kind: 'wrong', mark: parsed.mark, key: '' };
  const patch = diffTables(slot.spec ?? {}, parsed.document);
  const [problem] = slot.status.problems;
  if (Object.keys(patch).length === 0 && problem === undefined) return { kind: 'unchanged' };
  if (Object.keys(patch).length === 0 && problem !== undefined && slot.spec !== null)
    return { kind: 'wrong', mark: { line: lineOfKey(text, problem.key), message: problem.message }, key: problem.key };
  try {
    const body = { slots: [{ name: slot.name, spec: parsed.document }] };
    const { document } = parsed;
    return { kind: 'planned', patch, document, plan: await client.fetchJson<Plan>('/api/plan', { method: 'POST', body, signal }) };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    return { kind: 'wrong', mark: { line: lineOfKey(text, error.param), message: error.message }, key: error.param };
  }
}

function readDocument(tools: TomlTools, text: string): Table | undefined {
  const read = tools.read(text);
  return read.ok ? read.document : undefined;
}

function pathOf(name: string): string {
  return `/api/slots/${encodeURIComponent(name)}`;
}
