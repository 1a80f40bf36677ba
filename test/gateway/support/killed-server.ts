/** An inference server in its own process that tests kill. Answers after a random time, whole or as a stream. Argument: the port. Sends "ready" over IPC. */
import { createServer } from 'node:http';

const server = createServer((req, res) => {
  let body = '';
  req.on('data', (part: Buffer) => (body += part.toString()));
  req.on('end', () => {
    const stream = body.includes('"stream":true');
    const later = (): number => Math.random() * 25;
    setTimeout(() => {
      if (!stream) {
        const text = JSON.stringify({ ok: true });
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
        // The head and the body apart, so that a kill can fall between them.
        res.flushHeaders();
        setTimeout(() => res.end(text), later() / 4);
        return;
      }
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.flushHeaders();
      let count = 0;
      const timer = setInterval(() => {
        count += 1;
        if (count <= 5) res.write(`data: ${count}\n\n`);
        else {
          clearInterval(timer);
          res.end('data: [DONE]\n\n');
        }
      }, 4);
    }, later());
  });
});
server.listen(Number(process.argv[2]), '127.0.0.1', () => process.send?.('ready'));
process.on('disconnect', () => process.exit(0));
