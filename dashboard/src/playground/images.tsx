/** Generates images, streamed with previews or saved to the gallery. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { useApp } from '../app-context.ts';
import { addToGallery, cachedUrls, readGallery, type KeptImage, extendDrawing, NOTHING_DRAWN, type Drawing } from '../decide/images.ts';
import type { Table } from '../decide/patch.ts';
import { SelectField } from '../parts/fields.tsx';
import { P } from '../texts-playground.ts';
import { T } from '../texts.ts';
import { Gallery } from './gallery.tsx';
import { RunForm } from './run-form.tsx';
import { CodeSamples } from './code-samples.tsx';
import { SlotBar, useSlotChoice } from './slot-choice.tsx';
import { eachEvent } from './use-request.ts';

const SIZES = ['512x512', '768x768', '1024x1024', '1024x768', '768x1024'];
const GALLERY_KEY = 'svc.gallery';
const PREVIEWS = 3;

interface ImageOptions {
  readonly prompt: string;
  readonly size: string;
  readonly seed: string;
  readonly steps: string;
  readonly isStreamed: boolean;
}

const NO_OPTIONS: ImageOptions = { prompt: '', size: '', seed: '', steps: '', isStreamed: true };

function bodyOf(model: string, { prompt, size, seed, steps }: ImageOptions): Table {
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
  const [options, setOptions] = useState(NO_OPTIONS);
  const [drawing, setDrawing] = useState<Drawing>(NOTHING_DRAWN);
  const [gallery, setGallery] = useState<readonly KeptImage[]>(() => readGallery(localStorage.getItem(GALLERY_KEY)));
  const keep = (next: readonly KeptImage[]): void => {
    localStorage.setItem(GALLERY_KEY, JSON.stringify(next));
    setGallery(next);
  };
  const body = bodyOf(choice.slot, options);
  const draw = async (signal: AbortSignal): Promise<void> => {
    setDrawing(NOTHING_DRAWN);
    const path = '/v1/images/generations';
    if (!options.isStreamed) {
      const answer = await client.fetchJson<unknown>(path, { method: 'POST', body: { ...body, response_format: 'url' }, signal });
      keep(
        addToGallery(
          gallery,
          cachedUrls(answer).map((url) => ({ url, prompt: options.prompt })),
        ),
      );
      return;
    }
    const response = await client.fetch(path, { method: 'POST', body: { ...body, stream: true, partial_images: PREVIEWS }, signal });
    await eachEvent(response, (data) => setDrawing((before) => extendDrawing(before, data)));
  };
  return (
    <>
      <SlotBar choice={choice} />
      <RunForm slot={choice.slot} label={P.generate} isComplete={options.prompt.trim() !== ''} onRun={draw} failure={drawing.failure}>
        <OptionFields options={options} onOptions={setOptions} />
      </RunForm>
      <Result drawing={drawing} prompt={options.prompt} />
      <Gallery images={gallery} onRemove={(url) => keep(gallery.filter((image) => image.url !== url))} />
      <CodeSamples kind="image" body={body} />
    </>
  );
}

interface OptionFieldsProps {
  readonly options: ImageOptions;
  readonly onOptions: (options: ImageOptions) => void;
}

function OptionFields({ options, onOptions }: OptionFieldsProps): JSX.Element {
  const set = (changed: Partial<ImageOptions>): void => onOptions({ ...options, ...changed });
  const numberField = (key: 'seed' | 'steps', min: number, hint: string): JSX.Element => (
    <label>
      {P[key]}
      <input
        type="number"
        min={min}
        value={options[key]}
        placeholder={hint}
        onInput={(event) => set({ [key]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <>
      <label>
        {P.prompt}
        <textarea rows={3} value={options.prompt} onInput={(event) => set({ prompt: event.currentTarget.value })} />
      </label>
      <div class="fields">
        <SelectField label={T.size} value={options.size} options={[['', P.modelDefault], ...SIZES]} onValue={(size) => set({ size })} />
        {numberField('seed', 0, P.seedHint)}
        {numberField('steps', 1, P.modelDefault)}
        <SelectField
          label={P.output}
          value={options.isStreamed ? 'stream' : 'gallery'}
          options={[
            ['stream', P.withPreviews],
            ['gallery', P.keepInGallery],
          ]}
          onValue={(output) => set({ isStreamed: output === 'stream' })}
        />
      </div>
    </>
  );
}

function Result({ drawing: { preview, done }, prompt }: { readonly drawing: Drawing; readonly prompt: string }): JSX.Element | null {
  if (preview === undefined && done.length === 0) return null;
  return (
    <section class="drawn">
      {preview !== undefined && <img class="preview" src={preview} alt={`${P.generating}: ${prompt}`} />}
      {done.map((url, index) => (
        <figure key={index}>
          <img src={url} alt={prompt} />
          <figcaption>
            <a href={url} download={`image-${index + 1}.png`}>
              {T.download}
            </a>
          </figcaption>
        </figure>
      ))}
    </section>
  );
}
