/** The definitions that ship in `engines/`, parsed as the service parses them. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseDocument } from '../../../src/files/toml/decide/parse-document.ts';
import { parseEngine, type EngineDefinition } from '../../../src/schema/slot/engine-document.ts';

export const ENGINES_DIRECTORY = path.resolve(import.meta.dirname, '../../../engines');

export const shippedEngines = (): readonly EngineDefinition[] => enginesIn(ENGINES_DIRECTORY);

export function enginesIn(directory: string): readonly EngineDefinition[] {
  return readdirSync(directory)
    .filter((file) => file.endsWith('.toml'))
    .toSorted()
    .map((file) => engineOf(file.slice(0, -'.toml'.length), readFileSync(path.join(directory, file), 'utf8')));
}

/** With the lines that are comments by default. */
export const wholeEngine = (name: string): EngineDefinition =>
  engineOf(name, readFileSync(path.join(ENGINES_DIRECTORY, `${name}.toml`), 'utf8').replaceAll(/^#(?=[[a-zA-Z])/gm, ''));

/** Throws with its problems if the text is refused. */
function engineOf(name: string, text: string): EngineDefinition {
  const read = parseDocument(text);
  if (!read.ok) throw new Error(`${name}: ${read.message}`);
  const parsed = parseEngine(name, read.document);
  if (!parsed.ok) throw new Error(`${name}: ${parsed.problems.map(({ path: at, message }) => `${at.join('.')}: ${message}`).join('; ')}`);
  return parsed.definition;
}
