/** Blocks of shell commands in the documentation. Words after `sh` in a fence mark a block: `runnable` (test/house), `machine=NAME` (test/machines). */

export interface Block {
  /** Page and line. */
  readonly place: string;
  readonly marks: readonly string[];
  /** Without the indentation of the fence. */
  readonly commands: string;
}

export function blocksIn(page: string, text: string): readonly Block[] {
  return [...text.matchAll(/^( *)```sh((?: \S+)*)\n(.*?)^ *```$/gms)].map(({ index, 1: indent = '', 2: marks = '', 3: commands = '' }) => ({
    place: `${page}:${text.slice(0, index).split('\n').length}`,
    marks: marks.split(' ').filter(Boolean),
    commands: commands.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }));
}
