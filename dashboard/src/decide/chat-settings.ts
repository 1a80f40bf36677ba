/** What a user sets for a conversation. Pure. */
import { isTable, type Table } from './patch.ts';
import { at, parseJson, textOf } from './untrusted.ts';

/** As typed; empty: the model's own. */
export interface ChatSettings {
  readonly system: string;
  readonly temperature: string;
  readonly topP: string;
  readonly maxTokens: string;
  readonly seed: string;
}

export const NO_SETTINGS: ChatSettings = { system: '', temperature: '', topP: '', maxTokens: '', seed: '' };

const isKey = (key: string): key is keyof ChatSettings => key in NO_SETTINGS;
const KEYS = Object.keys(NO_SETTINGS).filter(isKey);

/** Fields of the request, as in OpenAI's API. */
export function samplingOf({ temperature, topP, maxTokens, seed }: ChatSettings): Table {
  const given = { temperature, top_p: topP, max_tokens: maxTokens, seed };
  const numbers = Object.entries(given).flatMap(([name, text]) => {
    const value = Number(text);
    return text.trim() === '' || !Number.isFinite(value) ? [] : [[name, value] as const];
  });
  return Object.fromEntries(numbers);
}

export const isDefault = (settings: ChatSettings): boolean => KEYS.every((key) => settings[key] === '');

function readSettings(value: unknown): ChatSettings {
  const read = (key: keyof ChatSettings): string => textOf(at(value, key));
  return {
    system: read('system'),
    temperature: read('temperature'),
    topP: read('topP'),
    maxTokens: read('maxTokens'),
    seed: read('seed'),
  };
}

export interface SavedSettings {
  readonly current: ChatSettings;
  /** By name. */
  readonly presets: ReadonlyMap<string, ChatSettings>;
}

/** Reads a text that an earlier version of the page, or somebody else, may have written. */
export function readSaved(text: string): SavedSettings {
  const saved = parseJson(text);
  const presets = at(saved, 'presets');
  return {
    current: readSettings(at(saved, 'current')),
    presets: new Map(isTable(presets) ? Object.entries(presets).map(([name, value]) => [name, readSettings(value)]) : []),
  };
}

export const writeSaved = ({ current, presets }: SavedSettings): string =>
  JSON.stringify({ current, presets: Object.fromEntries(presets) });
