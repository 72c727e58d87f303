// Node's own fetch. What went wrong is in the cause.
try {
  const answer = await fetch(process.argv[2]);
  process.stdout.write(await answer.text());
} catch (error) {
  console.error(error.cause ?? error);
  process.exit(1);
}
