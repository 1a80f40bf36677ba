import { describe, expect, test } from '@jest/globals';
import { parseCatalogue, type CatalogueRecords } from '../../../../src/models/catalogue/decide/parse-catalogue.ts';
import { formatProblem } from '../../../../src/schema/slot/spec-problem.ts';

const SHA = 'a'.repeat(64);
const FILE = `[[models.files]]\nrepo = "o/r"\nfile = "m-Q4_K_M.gguf"\nsize = 42\nsha256 = "${SHA}"\n`;
const ENTRY = `[[models]]\nid = "own"\nkind = "chat"\n${FILE}`;
const GOOD = ENTRY.replace('"own"', '"good"');

function read(text: string, shipped: CatalogueRecords = new Map()) {
  const { records, problems, refused } = parseCatalogue(text, 'models.toml', shipped);
  return {
    ids: [...records.keys()],
    problems: problems.map((problem) => formatProblem(problem)),
    refused: refused && new Set(refused.keys()),
  };
}

describe('parseCatalogue() of a right text', () => {
  test('an entry needs no more than an id, a kind, and a file with its size and hash', () => {
    expect(read(ENTRY)).toEqual({ ids: ['own'], problems: [], refused: new Set() });
    expect(read('')).toEqual({ ids: [], problems: [], refused: new Set() });
    expect(read(`\u{FEFF}${ENTRY}`).ids).toEqual(['own']);
  });

  test.each([
    ['an address', FILE.replace(/repo.*\nfile.*/, 'url = "https://example.com/a/m.gguf?download=1"')],
    ['a commit', FILE.replace('size', `commit = "${'0'.repeat(40)}"\nsize`)],
    ['a file in a directory of the repository', FILE.replace('"m-', '"deep/er/m-')],
    ['two parts', FILE + FILE.replace('m-Q4_K_M', 'm-2')],
    ['an upper-case hash', FILE.replace(SHA, SHA.toUpperCase())],
  ])('a file can be given by %s', (_name, file) => {
    expect(read(ENTRY.replace(FILE, file)).problems).toEqual([]);
  });
});

describe('parseCatalogue() of an entry with a mistake', () => {
  const inEntry = (line: string) => ENTRY.replace('kind = "chat"\n', `kind = "chat"\n${line}\n`);
  test.each([
    ['an id with ".."', ENTRY.replace('"own"', '"../own"'), '2:1: models.0.id: Write an id of letters, digits'],
    ['an id with a slash', ENTRY.replace('"own"', '"a/b"'), '2:1: models.0.id: Write an id of letters, digits'],
    ['an empty id', ENTRY.replace('"own"', '""'), '2:1: models.0.id: Write an id of letters, digits'],
    ['an id of 4 KB', ENTRY.replace('"own"', `"${'a'.repeat(4096)}"`), '2:1: models.0.id: Use at most 80 characters, not 4096'],
    ['an id with NUL', ENTRY.replace('"own"', '"a\\u0000b"'), '2:1: models.0.id: Write an id of letters, digits'],
    ['an id like a file', ENTRY.replace('"own"', '"own.gguf"'), '2:1: models.0.id: Write an id that does not end like the name of a file'],
    ['no id', ENTRY.replace('id = "own"\n', ''), '1:1: models.0.id: Set "id": it is required'],
    ['another kind', ENTRY.replace('"chat"', '"chart"'), '3:1: models.0.kind: Use one of "chat", "coder"'],
    ['a number as id', ENTRY.replace('"own"', '5'), '2:1: models.0.id: Write a string in quotes, not 5'],
    ['an unknown key', inEntry('contxt = 5'), '4:1: models.0.contxt: Unknown key "contxt"; did you mean "context"?'],
    ['a context of nothing', inEntry('context = 0'), '4:1: models.0.context: Use at least 1, not 0'],
    ['a licence with a control character', inEntry('license = "a\\u001bb"'), '4:1: models.0.license: Write one line without control'],
    ['a licence over http', inEntry('license_url = "http://a.test"'), '4:1: models.0.license_url: Write an address that begins with'],
    [
      'pooling of a chat model',
      inEntry('pooling = "cls"'),
      '4:1: models.0.pooling: Only a model of kind "embed" has a pooling; remove "pooling"',
    ],
    ['an absolute path', ENTRY.replace('"m-Q4', '"/etc/m-Q4'), 'models.0.files.0.file: Write a relative path'],
    ['a path with ".."', ENTRY.replace('"m-Q4', '"a/../../m-Q4'), 'models.0.files.0.file: Write a relative path'],
    ['a hidden file', ENTRY.replace('"m-Q4', '".svc/m-Q4'), 'models.0.files.0.file: Write a relative path'],
    ['a path with NUL', ENTRY.replace('"m-Q4', '"\\u0000m-Q4'), 'models.0.files.0.file: Write a relative path'],
    ['a repository with ".."', ENTRY.replace('"o/r"', '"o/.."'), 'models.0.files.0.repo: Write the repository as "owner/repo"'],
    ['a short hash', ENTRY.replace(SHA, 'abc'), 'models.0.files.0.sha256: Write the 64 hexadecimal digits'],
    ['no hash', ENTRY.replace(/sha256.*\n/, ''), 'models.0.files.0.sha256: Set "files.0.sha256": it is required'],
    ['a negative size', ENTRY.replace('size = 42', 'size = -1'), 'models.0.files.0.size: Use at least 1, not -1'],
    ['a size that is not whole', ENTRY.replace('size = 42', 'size = 4.2'), 'models.0.files.0.size: Write a whole number'],
    ['a file over http', ENTRY.replace(/repo.*\nfile.*/, 'url = "http://a.test/m.gguf"'), 'models.0.files.0.url: Write an address that'],
    ['a password', ENTRY.replace(/repo.*\nfile.*/, 'url = "https://u:p@a.test/m.gguf"'), 'without a user name or password'],
    ['an address without a file', ENTRY.replace(/repo.*\nfile.*/, 'url = "https://a.test/"'), 'whose path ends in a file name'],
    ['two places', ENTRY.replace('size', 'url = "https://a.test/m.gguf"\nsize'), 'models.0.files.0: Say where the file is'],
    ['no place', ENTRY.replace(/repo.*\nfile.*\n/, ''), 'models.0.files.0: Say where the file is'],
    ['a file twice', ENTRY + FILE, 'models.0.files.1: The file "m-Q4_K_M.gguf" occurs twice; name each file once'],
    [
      'a path of its own',
      ENTRY.replace('size', 'path = "hf/m.gguf"\nsize'),
      'models.0.files.0.path: Only files of image models have a path',
    ],
    ['no GGUF file', ENTRY.replace('.gguf', '.onnx'), 'models.0.files.0: The server loads the first file, which must be a ".gguf" file'],
    ['vision without a projector', ENTRY.replace('"chat"', '"vision"'), 'models.0.files: A model of kind "vision" needs a projector'],
    ['no files', '[[models]]\nid = "own"\nkind = "chat"\nfiles = []\n', 'models.0.files: Use at least 1 entries, not 0'],
    ['a text as an entry', 'models = ["own"]\n', 'models.0: Write a table, not "own"'],
  ])('%s is refused with its position', (_name, text, message) => {
    const { ids, problems } = read(text);
    expect(ids).toEqual([]);
    expect(problems[0]).toMatch(/^models\.toml:[0-9]+:[0-9]+: /);
    expect(problems[0]).toContain(message);
  });

  test('the other entries are there', () => {
    const bad = ENTRY.replace('size = 42', 'size = "big"');
    expect(read(bad + GOOD)).toMatchObject({ ids: ['good'], refused: new Set(['own']), problems: [expect.stringContaining(':7:1: ')] });
    expect(read(GOOD + bad)).toMatchObject({ ids: ['good'], refused: new Set(['own']) });
  });

  test('the second entry with an id is refused, and the first one stays', () => {
    const { ids, problems, refused } = read(ENTRY + ENTRY);
    expect({ ids, refused }).toEqual({ ids: ['own'], refused: new Set() });
    expect(problems).toEqual(['models.toml:10:1: models.1.id: An earlier entry has the id "own"; use another one']);
  });

  test('of thousands of problems only some are listed', () => {
    const { problems } = read(ENTRY.replace('"own"', '"-"').repeat(400));
    expect(problems).toHaveLength(51);
    expect(problems.at(-1)).toContain('There are 350 more problems');
  });
});

describe('parseCatalogue() of a text that is no catalogue', () => {
  test.each([
    ['broken TOML', '[[models]\n', 'models.toml:1:'],
    ['an unknown table', '[model]\nid = "a"\n', 'models.toml:1:2: model: Unknown key "model"; did you mean "models"?'],
    ['a table instead of a list', '[models]\nid = "a"\n', 'models.toml:1:2: models: Write a list in brackets'],
    ['NUL', 'a = "\0"\n', 'models.toml:1:'],
    ['a key of objects', '[__proto__]\na = 1\n', '; use another key'],
    ['deep nesting', `models = ${'['.repeat(500)}${']'.repeat(500)}\n`, 'Tables and lists are nested more than'],
    ['too many entries', '[[models]]\n'.repeat(501), 'Use at most 500 entries, not 501'],
  ])('%s leaves nothing, and says so', (_name, text, message) => {
    const { ids, problems, refused } = read(text);
    expect({ ids, refused }).toEqual({ ids: [], refused: undefined });
    expect(problems.join('\n')).toContain(message);
  });
});

describe('an id of the shipped catalogue', () => {
  const shipped = parseCatalogue(ENTRY, 'catalogue.toml').records;

  test('is refused, so that no file changes by accident what an id means', () => {
    expect(read(ENTRY + GOOD, shipped)).toMatchObject({
      ids: ['good'],
      problems: [
        'models.toml:2:1: models.0.id: The shipped catalogue has the id "own"; use another one, or add "override = true" to replace that entry',
      ],
    });
  });

  test('is replaced by an entry that says so', () => {
    expect(read(ENTRY.replace('kind', 'override = true\nkind'), shipped)).toMatchObject({ ids: ['own'], problems: [] });
  });

  test.each([
    ['another provider', ENTRY.replace('kind = "chat"', 'override = true\nkind = "image"'), 'has the provider "gguf"; use another id'],
    ['an id that is not there', GOOD.replace('kind', 'override = true\nkind'), 'The shipped catalogue has no model "good"'],
  ])('is not overridden by %s', (_name, text, message) => {
    expect(read(text, shipped)).toMatchObject({ ids: [], problems: [expect.stringContaining(message)] });
  });

  test('its files are not replaced by those of another id', () => {
    const image = (id: string, sha: string) =>
      `[[models]]\nid = "${id}"\nkind = "image"\n${FILE.replace(SHA, sha).replace('size', 'path = "image/models/vae/ae.safetensors"\nsize')}`;
    const images = parseCatalogue(image('a', SHA), 'catalogue.toml').records;
    expect(read(image('b', 'b'.repeat(64)), images).problems[0]).toContain('Another file of the model "a" has this path');
    expect(read(image('b', SHA), images).problems).toEqual([]);
  });
});
