/** Renders Markdown as elements. Model output never becomes HTML: HTML is shown as text, and images become links. */
import { Marked, type Token, type TokenizerExtension } from 'marked';
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { findMath, readMath } from '../decide/math.ts';
import { P } from '../texts-playground.ts';
import { safeLink } from '../decide/untrusted.ts';

/** A formula is a block where it stands alone, and part of a line elsewhere. */
const mathIn = (level: 'block' | 'inline'): TokenizerExtension => ({
  name: `${level}-math`,
  level,
  start: (text) => findMath(text, level),
  tokenizer(text) {
    const found = readMath(text, level);
    return found === undefined ? undefined : { type: 'math', ...found };
  },
});
const markdown = new Marked({ extensions: [mathIn('block'), mathIn('inline')] });

export function Markdown({ text }: { readonly text: string }): JSX.Element {
  const tokens = useMemo(() => markdown.lexer(text), [text]);
  return <div class="markdown">{tokens.map(show)}</div>;
}

function inner(token: Token): ComponentChildren {
  return 'tokens' in token && token.tokens !== undefined ? token.tokens.map(show) : 'text' in token ? token.text : token.raw;
}

const PLAIN = {
  paragraph: 'p',
  strong: 'strong',
  em: 'em',
  del: 'del',
  blockquote: 'blockquote',
} as const;

function show(token: Token, key: number): ComponentChildren {
  switch (token.type) {
    case 'paragraph':
    case 'strong':
    case 'em':
    case 'del':
    case 'blockquote': {
      const Element = PLAIN[token.type];
      return <Element key={key}>{inner(token)}</Element>;
    }
    case 'heading':
      // A heading element would break the heading order of the page.
      return (
        <p key={key} class="heading">
          {inner(token)}
        </p>
      );
    case 'code':
      return (
        <pre key={key} tabIndex={0}>
          <code>{token.text}</code>
        </pre>
      );
    case 'codespan':
      return <code key={key}>{token.text}</code>;
    case 'list':
      return <List key={key} token={token} />;
    case 'link':
    case 'image':
      return <Link key={key} token={token} />;
    case 'math':
      return <Formula key={key} tex={token['tex']} isBlock={token['isBlock'] === true} />;
    case 'table':
      return <Table key={key} token={token} />;
    case 'br':
      return <br key={key} />;
    case 'hr':
      return <hr key={key} />;
    case 'space':
    case 'def':
      return null;
    case 'html':
    case 'tag':
      return token.raw;
    default:
      return inner(token);
  }
}

interface TokenProps {
  readonly token: Token;
}

function List({ token }: TokenProps): JSX.Element | null {
  if (token.type !== 'list') return null;
  const items: readonly Token[] = token.items;
  const shown = items.map((item, index) => {
    const { task, checked } = item.type === 'list_item' ? item : {};
    return (
      <li key={index} class={task === true ? 'task' : undefined}>
        {task === true && (
          <input type="checkbox" checked={checked === true} disabled aria-label={checked === true ? P.taskDone : P.taskOpen} />
        )}
        {inner(item)}
      </li>
    );
  });
  return token.ordered === true ? <ol start={Number(token.start) || 1}>{shown}</ol> : <ul>{shown}</ul>;
}

/** Shows the source where it cannot be drawn. The library writes elements, never HTML. */
function Formula({ tex, isBlock }: { readonly tex: string; readonly isBlock: boolean }): JSX.Element {
  const host = useRef<HTMLElement>(null);
  useEffect(() => {
    let isGone = false;
    void import('temml').then(({ default: temml }) => {
      if (isGone || host.current === null) return;
      try {
        temml.render(tex, host.current, { displayMode: isBlock, throwOnError: true, trust: false, maxExpand: MAX_EXPAND });
      } catch {
        host.current.textContent = tex;
      }
    });
    return () => void (isGone = true);
  }, [tex, isBlock]);
  // Without children, Preact leaves to the library what is inside.
  return <span ref={host} class={isBlock ? 'math block' : 'math'} />;
}

/** Ends formulas that define themselves. */
const MAX_EXPAND = 200;

function Link({ token }: TokenProps): JSX.Element | null {
  if (token.type !== 'link' && token.type !== 'image') return null;
  const href = safeLink(String(token.href));
  if (href === undefined) return <>{token.raw}</>;
  return (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {token.type === 'image' ? String(token.text || token.href) : inner(token)}
    </a>
  );
}

function Table({ token }: TokenProps): JSX.Element | null {
  if (token.type !== 'table') return null;
  const header: readonly Token[] = token.header;
  const rows: readonly (readonly Token[])[] = token.rows;
  return (
    <table>
      <thead>
        <tr>
          {header.map((cell, index) => (
            <th key={index}>{inner(cell)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={index}>
            {row.map((cell, column) => (
              <td key={column}>{inner(cell)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
