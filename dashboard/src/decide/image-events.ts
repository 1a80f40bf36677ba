/** What the events of `/v1/images/generations` say while an image is drawn. Pure. */
import { at, parseJson, textOf } from './json.ts';

export interface Drawing {
  /** As an address of the page; undefined before the first preview. */
  readonly preview: string | undefined;
  readonly done: readonly string[];
  readonly failure: string;
}

export const NOTHING_DRAWN: Drawing = { preview: undefined, done: [], failure: '' };

const FORMATS = ['png', 'jpeg', 'webp'];

/** `data` of one event; what is not understood changes nothing. */
export function extendDrawing(drawing: Drawing, data: string): Drawing {
  const event = parseJson(data);
  const failure = textOf(at(at(event, 'error'), 'message'));
  if (failure !== '') return { ...drawing, failure };
  const bytes = textOf(at(event, 'b64_json'));
  if (bytes === '') return drawing;
  const format = FORMATS.find((name) => name === at(event, 'output_format')) ?? 'png';
  const url = `data:image/${format};base64,${bytes}`;
  if (textOf(at(event, 'type')).endsWith('.partial_image')) return { ...drawing, preview: url };
  return { ...drawing, preview: undefined, done: [...drawing.done, url] };
}
