/** Results of a search of the Hugging Face Hub, below the models that the service knows. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp, useMay } from '../app-context.ts';
import { expectedSpeed, measuredSpeeds, type MeasuredSpeed } from '../decide/expected-speed.ts';
import { bestOf, entryOf, labelOf } from '../decide/found-models.ts';
import { slotsFor } from '../decide/model-facts.ts';
import { safeLink } from '../decide/untrusted.ts';
import { allSlots } from '../io/store.ts';
import { SelectField } from '../parts/fields.tsx';
import { LoadStatus, useLoaded } from '../parts/use-loaded.tsx';
import { T } from '../texts.ts';
import type { FoundModel, Models, ModelSearch, UsageReport } from '../types.ts';
import { ModelRow, type ModelRowProps } from './model-row.tsx';

type RowProps = Omit<ModelRowProps, 'model' | 'children'>;

/** Sends a request only when asked to: the Hub limits them. */
export function HubSearch({ text, ...rest }: RowProps & { readonly text: string }): JSX.Element {
  const [asked, setAsked] = useState('');
  const words = text.trim();
  return (
    <section>
      <h2>{T.hub}</h2>
      {words === '' && <p class="why">{T.hubHint}</p>}
      {words !== '' && asked !== words && (
        <button type="button" onClick={() => setAsked(words)}>
          {T.hubSearch(words)}
        </button>
      )}
      {words !== '' && asked === words && <Found key={words} text={words} {...rest} />}
    </section>
  );
}

function Found(props: RowProps & { readonly text: string }): JSX.Element {
  return <Results measured={useMeasuredSpeeds()} {...props} />;
}

/** What models have done on this machine in the last 30 days. Empty until then, and without the scope to know it. */
function useMeasuredSpeeds(): readonly MeasuredSpeed[] {
  const { client } = useApp();
  const mayRead = useMay()('all');
  const loaded = useLoaded(
    async (signal) => {
      if (!mayRead) return [];
      const [{ usage }, { models }] = await Promise.all([
        client.fetchJson<UsageReport>('/api/usage?by=model', { signal }),
        client.fetchJson<Models>('/api/models', { signal }),
      ]);
      return measuredSpeeds(usage, models);
    },
    [mayRead],
  );
  return loaded.kind === 'done' ? loaded.value : [];
}

interface ResultsProps extends RowProps {
  readonly text: string;
  readonly measured: readonly MeasuredSpeed[];
  readonly cursor?: string;
}

function Results({ text, cursor, ...rest }: ResultsProps): JSX.Element {
  const { client, store } = useApp();
  const [isMore, setMore] = useState(false);
  const query = new URLSearchParams({ q: text, ...(cursor === undefined ? {} : { cursor }) });
  const loaded = useLoaded((signal) => client.fetchJson<ModelSearch>(`/api/models/search?${query.toString()}`, { signal }), []);
  if (loaded.kind !== 'done') return <LoadStatus loaded={loaded} loading={T.searching} />;
  const { models, next } = loaded.value;
  const { target } = rest;
  const shown = models.filter((found) => {
    const best = bestOf(found);
    return target === undefined || (best !== undefined && slotsFor(entryOf(found, best), allSlots(store)).includes(target));
  });
  return (
    <>
      {shown.length === 0 && <p role="status">{T.noModels}</p>}
      {shown.length > 0 && (
        <ul class="models">
          {shown.map((found) => (
            <FoundRow key={found.id} found={found} {...rest} />
          ))}
        </ul>
      )}
      {next !== null &&
        (isMore ? (
          <Results text={text} cursor={next} {...rest} />
        ) : (
          <button type="button" onClick={() => setMore(true)}>
            {T.moreResults}
          </button>
        ))}
    </>
  );
}

type FoundRowProps = RowProps & { readonly found: FoundModel; readonly measured: readonly MeasuredSpeed[] };

function FoundRow({ found, measured, ...rest }: FoundRowProps): JSX.Element {
  const [uri, setUri] = useState(bestOf(found)?.uri);
  const chosen = found.quantisations.find((each) => each.uri === uri);
  if (chosen === undefined)
    return (
      <li class="model-row">
        <div>
          <h3>{found.id}</h3>
          <p class="why">{found.problem ?? T.noGguf}</p>
        </div>
      </li>
    );
  const options = found.quantisations.map((each) => [each.uri, labelOf(each)] as const);
  const page = safeLink(found.url);
  const speed = expectedSpeed(chosen.size_bytes, measured);
  const tags = [
    speed !== undefined && T.expectedSpeed(speed.tokensPerSecond, speed.like),
    T.downloads(found.downloads.toLocaleString('en')),
    found.gated && T.gated,
    found.needs_acceptance && T.licenceOpen,
    chosen.projector !== null && T.withProjector,
    found.draft !== null && T.withDraft,
  ];
  return (
    <ModelRow key={chosen.uri} model={entryOf(found, chosen)} {...rest}>
      <p class="tags">
        {page !== undefined && (
          <a class="tag" href={page} target="_blank" rel="noreferrer noopener">
            {found.id}
          </a>
        )}
        {tags.map(
          (tag) =>
            tag !== false && (
              <span key={tag} class="tag">
                {tag}
              </span>
            ),
        )}
      </p>
      <SelectField label={T.quantisation} value={chosen.uri} options={options} onValue={setUri} isInline />
      {found.problem !== null && <p class="why">{found.problem}</p>}
    </ModelRow>
  );
}
