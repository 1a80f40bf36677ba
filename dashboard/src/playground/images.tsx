/** Draws images: with previews while they are drawn, or kept in the cache of the service. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { addToGallery, cachedUrls, readGallery, type KeptImage, extendDrawing, NOTHING_DRAWN, type Drawing } from '../decide/images.ts';
import type { Table } from '../decide/patch.ts';
import { P } from '../texts-playground.ts';
import { Gallery } from './gallery.tsx';
import { RunButton } from './run-button.tsx';
import { SameRequest } from './same-request.tsx';
import { SlotBar, useSlotChoice } from './slot-choice.tsx';
import { eachEvent, useRequest } from './use-request.ts';

const SIZES = ['512x512', '768x768', '1024x1024', '1024x768', '768x1024'];
const GALLERY_KEY = 'svc.gallery';
const PREVIEWS = 3;

interface Wishes {
  readonly prompt: string;
  readonly size: string;
  readonly seed: string;
  readonly steps: string;
  readonly isStreamed: boolean;
}

const NO_WISHES: Wishes = { prompt: '', size: '', seed: '', steps: '', isStreamed: true };

function bodyOf(model: string, { prompt, size, seed, steps }: Wishes): Table {
  return {
    model,
    prompt,
    ...(size === '' ? {} : { size }),
    ...(seed === '' ? {} : { seed: Number(seed) }),
    ...(steps === '' ? {} : { steps: Number(steps) }),
  };
}

export function Images(): JSX.Element {
  const { client } = useApp();
  const choice = useSlotChoice('image');
  const request = useRequest();
  const [wishes, setWishes] = useState(NO_WISHES);
  const [drawing, setDrawing] = useState<Drawing>(NOTHING_DRAWN);
  const [gallery, setGallery] = useState<readonly KeptImage[]>(() => readGallery(localStorage.getItem(GALLERY_KEY)));
  const keep = (next: readonly KeptImage[]): void => {
    localStorage.setItem(GALLERY_KEY, JSON.stringify(next));
    setGallery(next);
  };
  const body = bodyOf(choice.slot, wishes);
  const draw = async (signal: AbortSignal): Promise<void> => {
    setDrawing(NOTHING_DRAWN);
    const path = '/v1/images/generations';
    if (!wishes.isStreamed) {
      const answer = await client.ask<unknown>(path, { method: 'POST', body: { ...body, response_format: 'url' }, signal });
      keep(
        addToGallery(
          gallery,
          cachedUrls(answer).map((url) => ({ url, prompt: wishes.prompt })),
        ),
      );
      return;
    }
    const response = await client.open(path, { method: 'POST', body: { ...body, stream: true, partial_images: PREVIEWS }, signal });
    await eachEvent(response, (data) => setDrawing((before) => extendDrawing(before, data)));
  };
  const run = (event: Event): void => {
    event.preventDefault();
    request.start(draw);
  };
  const failed = drawing.failure === '' ? request : { ...request, failure: drawing.failure };
  return (
    <>
      <SlotBar choice={choice} />
      <form class="ask" onSubmit={run}>
        <WishFields wishes={wishes} onWishes={setWishes} />
        <RunButton request={failed} label={P.draw} slot={choice.slot} canRun={choice.slot !== '' && wishes.prompt.trim() !== ''} />
      </form>
      {request.running && <StepBar slot={choice.slot} />}
      <Drawn drawing={drawing} prompt={wishes.prompt} />
      <Gallery images={gallery} onForget={(url) => keep(gallery.filter((image) => image.url !== url))} />
      <SameRequest kind="image" body={body} />
    </>
  );
}

interface WishFieldsProps {
  readonly wishes: Wishes;
  readonly onWishes: (wishes: Wishes) => void;
}

function WishFields({ wishes, onWishes }: WishFieldsProps): JSX.Element {
  const set = (changed: Partial<Wishes>): void => onWishes({ ...wishes, ...changed });
  return (
    <>
      <label>
        {P.prompt}
        <textarea rows={3} value={wishes.prompt} onInput={(event) => set({ prompt: event.currentTarget.value })} />
      </label>
      <div class="fields">
        <label>
          {P.size}
          <select value={wishes.size} onChange={(event) => set({ size: event.currentTarget.value })}>
            <option value="">{P.sizeAuto}</option>
            {SIZES.map((size) => (
              <option key={size}>{size}</option>
            ))}
          </select>
        </label>
        <label>
          {P.seed}
          <input
            type="number"
            min="0"
            value={wishes.seed}
            placeholder={P.seedHint}
            onInput={(event) => set({ seed: event.currentTarget.value })}
          />
        </label>
        <label>
          {P.steps}
          <input
            type="number"
            min="1"
            value={wishes.steps}
            placeholder={P.stepsHint}
            onInput={(event) => set({ steps: event.currentTarget.value })}
          />
        </label>
        <label>
          {P.delivery}
          <select
            value={wishes.isStreamed ? 'stream' : 'gallery'}
            onChange={(event) => set({ isStreamed: event.currentTarget.value === 'stream' })}
          >
            <option value="stream">{P.withPreviews}</option>
            <option value="gallery">{P.keepInGallery}</option>
          </select>
        </label>
      </div>
    </>
  );
}

/** How far the image is, as the service reports it of the slot. */
function StepBar({ slot }: { readonly slot: string }): JSX.Element | null {
  const { store } = useApp();
  const progress = store.of(slot)?.line.value.progress;
  if (progress === null || progress === undefined) return null;
  return (
    <div class="download">
      <progress aria-label={P.drawing} max={progress.total} value={progress.done} />
      <small>{P.step(progress.done, progress.total)}</small>
    </div>
  );
}

function Drawn({ drawing: { preview, done }, prompt }: { readonly drawing: Drawing; readonly prompt: string }): JSX.Element | null {
  if (preview === undefined && done.length === 0) return null;
  return (
    <section class="drawn">
      {preview !== undefined && <img class="preview" src={preview} alt={`${P.drawing}: ${prompt}`} />}
      {done.map((url, index) => (
        <figure key={index}>
          <img src={url} alt={prompt} />
          <figcaption>
            <a href={url} download={`image-${index + 1}.png`}>
              {P.download}
            </a>
          </figcaption>
        </figure>
      ))}
    </section>
  );
}
