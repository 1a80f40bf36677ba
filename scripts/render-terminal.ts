/** Draws lines of a terminal session as an SVG picture that is readable on light and dark pages. */

const CHARACTER_PX = 8;
const LINE_PX = 18;
const PADDING_PX = 16;
const TITLE_PX = 34;
const COLOURS = { background: '#1e2430', bar: '#2b3242', text: '#dfe4ee', prompt: '#8bd49c', comment: '#98a3b8' };
const BUTTONS = ['#ff5f57', '#febc2e', '#28c840'];

export interface TerminalPicture {
  readonly title: string;
  /** Longer lines are wrapped, as a terminal does. */
  readonly columns: number;
}

/** Lines that begin with "$ " are commands, and lines that begin with "# " are comments. A command that ends in a backslash continues in the next line. */
export function renderTerminal(lines: readonly string[], { title, columns }: TerminalPicture): string {
  const rows = lines.flatMap((line) => wrap(line, columns));
  const width = columns * CHARACTER_PX + 2 * PADDING_PX;
  const height = TITLE_PX + rows.length * LINE_PX + 2 * PADDING_PX;
  const buttons = BUTTONS.map((colour, index) => `<circle cx="${20 + index * 20}" cy="17" r="6" fill="${colour}"/>`);
  const texts = rows.map((row, index) => {
    const continues = rows[index - 1]?.endsWith('\\') === true;
    return rowOf(row, TITLE_PX + PADDING_PX + (index + 0.75) * LINE_PX, continues ? COLOURS.prompt : colourOf(row));
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}">
<rect width="${width}" height="${height}" rx="10" fill="${COLOURS.background}" stroke="#566079"/>
<path d="M0 ${TITLE_PX}V10a10 10 0 0 1 10-10h${width - 20}a10 10 0 0 1 10 10v${TITLE_PX - 10}z" fill="${COLOURS.bar}"/>
${buttons.join('')}
<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="13">
<text x="${width / 2}" y="22" text-anchor="middle" fill="${COLOURS.comment}">${escaped(title)}</text>
${texts.filter((text) => text !== '').join('\n')}
</g>
</svg>
`;
}

/** Each row has a fixed length, so that columns are aligned in every font. */
function rowOf(row: string, y: number, colour: string): string {
  const text = row.trimStart();
  if (text === '') return '';
  const x = PADDING_PX + (row.length - text.length) * CHARACTER_PX;
  return `<text x="${x}" y="${y}" textLength="${text.length * CHARACTER_PX}" xml:space="preserve" fill="${colour}">${escaped(text)}</text>`;
}

function colourOf(row: string): string {
  if (row.startsWith('$ ')) return COLOURS.prompt;
  return row.startsWith('# ') ? COLOURS.comment : COLOURS.text;
}

function wrap(line: string, columns: number): readonly string[] {
  const trimmed = line.trimEnd();
  if (trimmed.length <= columns) return [trimmed];
  return [trimmed.slice(0, columns), ...wrap(trimmed.slice(columns), columns)];
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
