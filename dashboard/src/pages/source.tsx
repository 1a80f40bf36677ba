/** The repository that declares the configuration, if there is one: what is in force, what differs, and why. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp, useMay } from '../app-context.ts';
import { formatTime } from '../decide/format.ts';
import { hashOf } from '../decide/route.ts';
import { ApiError, messageOf } from '../io/client.ts';
import { DataTable } from '../parts/data-table.tsx';
import { FactList, type NamedFact } from '../parts/fact-list.tsx';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';
import { G } from '../texts-source.ts';
import type { SourceDiff, SourceStatus } from '../types.ts';

const REFRESH_SECONDS = 5;
const SHORT_COMMIT = 10;

export function SourcePanel(): JSX.Element | null {
  const { client, now } = useApp();
  const may = useMay();
  const [round, setRound] = useState(0);
  const [isMissing, setMissing] = useState(false);
  const load = async (signal: AbortSignal): Promise<SourceStatus | undefined> => {
    if (isMissing || !may('read')) return undefined;
    return await client.fetchJson<SourceStatus>('/api/source', { signal }).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.code !== 'source.not_found') throw error;
      setMissing(true);
      return undefined;
    });
  };
  const loaded = useLoaded(load, [isMissing ? 0 : Math.floor(now.value / 1000 / REFRESH_SECONDS), round]);
  if (loaded.kind === 'done' && loaded.value === undefined) return null;
  return (
    <section class="panel source">
      <h2>{G.title}</h2>
      {loaded.kind === 'done' && loaded.value !== undefined ? (
        <Source source={loaded.value} onChanged={() => setRound(round + 1)} />
      ) : (
        <LoadStatus loaded={loaded} />
      )}
    </section>
  );
}

interface SourceProps {
  readonly source: SourceStatus;
  readonly onChanged: () => void;
}

function Source({ source, onChanged }: SourceProps): JSX.Element {
  const may = useMay();
  const { problem, files, suspended, state } = source;
  const differing = files.filter((file) => file.state !== 'Synced');
  return (
    <>
      <p>
        <span class={state === 'Synced' ? 'tag' : 'tag bad'}>{G.states[state]}</span>
        {suspended && <span class="tag">{G.suspended}</span>}
      </p>
      {problem !== null && (
        <p role="alert">
          {problem.message}
          {problem.commit !== null && ` (${shortOf(problem.commit)})`}
        </p>
      )}
      <SourceFacts source={source} />
      {differing.length > 0 && (
        <DataTable label={G.differences} titles={[G.file, G.slot, G.change]}>
          {differing.map(({ path, slot, change }) => (
            <tr key={path}>
              <td>
                <code>{path}</code>
              </td>
              <td>{slot !== null && <a href={hashOf({ page: 'slots', slot, tab: 'history' })}>{slot}</a>}</td>
              <td>{change !== null && G.changes[change]}</td>
            </tr>
          ))}
        </DataTable>
      )}
      {may('admin') && <SourceButtons source={source} onChanged={onChanged} />}
    </>
  );
}

const shortOf = (commit: string): string => commit.slice(0, SHORT_COMMIT);

function SourceFacts({ source }: { readonly source: SourceStatus }): JSX.Element {
  const { now } = useApp();
  const { url, ref, path, revision, applied_at: appliedAt, head, fetched_at: fetchedAt, held_until: heldUntil } = source;
  const time = (at: string | null): string => formatTime(at, now.peek());
  const facts: readonly NamedFact[] = [
    [G.repository, `${url} (${ref}${path === '' || path === '.' ? '' : `, ${path}`})`],
    [G.applied, revision === null ? G.never : `${shortOf(revision)} ${time(appliedAt)}`],
    [G.newest, head === null ? G.unknown : `${shortOf(head.commit)} ${head.subject} (${head.author}, ${time(head.at)})`],
    [G.fetched, fetchedAt === null ? G.never : time(fetchedAt)],
    ...(heldUntil === null ? [] : [[G.held, time(heldUntil)] as const]),
  ];
  return <FactList facts={facts} />;
}

function SourceButtons({ source: { suspended }, onChanged }: SourceProps): JSX.Element {
  const { client } = useApp();
  const [diff, setDiff] = useState<SourceDiff>();
  const [failure, setFailure] = useState('');
  const run = async (work: () => Promise<unknown>): Promise<void> => {
    setFailure('');
    try {
      await work();
      onChanged();
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  const post = async (verb: string): Promise<void> =>
    await run(async () => {
      setDiff(undefined);
      await client.fetchJson(`/api/source/${verb}`, { method: 'POST', body: {} });
    });
  return (
    <>
      <div class="buttons">
        <button type="button" class="main" disabled={suspended} onClick={() => void post('sync')}>
          {G.sync}
        </button>
        <button type="button" onClick={() => void post(suspended ? 'resume' : 'suspend')}>
          {suspended ? G.resume : G.suspend}
        </button>
        <button
          type="button"
          class="quiet"
          onClick={() => void run(async () => setDiff(await client.fetchJson<SourceDiff>('/api/source/diff')))}
        >
          {G.showDifferences}
        </button>
      </div>
      {failure !== '' && <p role="alert">{failure}</p>}
      {diff !== undefined && <Differences diff={diff} />}
    </>
  );
}

/** What a sync would change: the text here, and the one afterwards. */
function Differences({ diff: { files } }: { readonly diff: SourceDiff }): JSX.Element {
  if (files.length === 0) return <p role="status">{G.noDifferences}</p>;
  return (
    <>
      {files.map(({ path, before, after }) => (
        <details key={path} open={files.length === 1}>
          <summary>
            <code>{path}</code>
          </summary>
          <div class="side-by-side">
            <Text title={G.here} text={before} />
            <Text title={G.afterSync} text={after} />
          </div>
        </details>
      ))}
    </>
  );
}

function Text({ title, text }: { readonly title: string; readonly text: string | null }): JSX.Element {
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      {text === null ? <p class="why">{G.noFile}</p> : <pre tabIndex={0}>{text}</pre>}
    </section>
  );
}
